"""The guard obeys the checklist: retries, what holds them back, and the fallback route."""

from __future__ import annotations

from time import monotonic

import gevent
import pytest
from gevent.event import Event

from flightsvc.errors import (
    CheckedFailure,
    FallbackAnswer,
    ProviderRateLimited,
    ProviderUnavailable,
    RetryExhausted,
    SkipRetry,
)
from flightsvc.facts import CallFacts
from flightsvc.guard import Route, Routes, Target
from flightsvc.guard.health import HealthLimits
from flightsvc.guard.windows import RetryBudget, Window
from flightsvc.metrics import Metrics

from .build import STAGE, TARGET, make_guard
from .line_model import DOWN, OK

SMALL = Target("simulated", "smaller")


class Asked:
    """A primary route that fails, and a fallback route."""

    def __init__(self, *failures: Exception, smaller: Exception | None = None) -> None:
        self.failures = list(failures)
        self.smaller = smaller
        self.at: list[float] = []
        self.smaller_at: list[float] = []
        self.routes = Routes(Route(TARGET, self._ask), self._instead)

    def _ask(self, _timeout_s: float) -> str:
        self.at.append(monotonic())
        raise self.failures[min(len(self.at), len(self.failures)) - 1]

    def _instead(self, code):
        return Route(SMALL, self._small) if code.fallback.action == "smaller_model" else None

    def _small(self, _timeout_s: float) -> str:
        self.smaller_at.append(monotonic())
        if self.smaller is not None:
            raise self.smaller
        return "small"


def test_the_third_step_is_the_fallback_route_after_900_ms():
    asked, facts = Asked(ProviderUnavailable()), CallFacts()
    with pytest.raises(FallbackAnswer) as answered:
        make_guard().execute(STAGE, asked.routes, facts=facts)

    assert (answered.value.value, answered.value.action) == ("small", "smaller_model")
    assert answered.value.failure.code == "PROVIDER_UNAVAILABLE"
    assert len(asked.at) == 3
    assert len(asked.smaller_at) == 1
    assert asked.at[1] - asked.at[0] >= 0.1
    assert asked.at[2] - asked.at[1] >= 0.3
    assert asked.smaller_at[0] - asked.at[2] >= 0.9
    assert (facts.retry_count, facts.code) == (2, "PROVIDER_UNAVAILABLE")
    assert facts.fallback_action == "smaller_model"
    assert len(facts.fingerprint) == 16


def test_h36_three_on_the_primary_route_and_at_most_one_on_the_other():
    asked = Asked(ProviderUnavailable(), smaller=ProviderUnavailable())
    facts = CallFacts()
    with pytest.raises(RetryExhausted) as raised:
        make_guard().execute(STAGE, asked.routes, facts=facts)

    assert (len(asked.at), len(asked.smaller_at)) == (3, 1)
    assert raised.value.code == facts.code == "RETRY_EXHAUSTED"
    assert facts.cause == "PROVIDER_UNAVAILABLE"


def test_the_fallback_route_is_left_out_where_its_wait_does_not_fit():
    asked = Asked(ProviderUnavailable())
    with pytest.raises(RetryExhausted):
        make_guard(timeout_ms=500, budget_ms=1_000).execute(STAGE, asked.routes)
    assert (len(asked.at), len(asked.smaller_at)) == (3, 0)


def test_a_breaker_that_is_open_leads_to_the_fallback_route_at_once():
    guard = make_guard(breaker_failures=1)
    began, asked = monotonic(), Asked(ProviderUnavailable())
    for _ in range(2):
        with pytest.raises(FallbackAnswer):
            guard.execute(STAGE, asked.routes)
    assert (len(asked.at), len(asked.smaller_at)) == (1, 2)
    assert monotonic() - began < 0.9


def test_h37_a_retry_after_beyond_the_budget_leads_to_the_fallback_route_at_once():
    asked = Asked(ProviderRateLimited(retry_after_s=60))
    began = monotonic()
    with pytest.raises(FallbackAnswer):
        make_guard().execute(STAGE, asked.routes)
    assert (len(asked.at), len(asked.smaller_at)) == (1, 1)
    assert monotonic() - began < 0.9


def test_skip_retry_ends_the_call_with_its_last_failure():
    asked, facts = Asked(ProviderUnavailable()), CallFacts()
    calls = []

    def hook():
        calls.append(len(asked.at))
        if len(calls) == 2:
            raise SkipRetry("the order is cancelled")

    with pytest.raises(ProviderUnavailable):
        make_guard().execute(STAGE, asked.routes, facts=facts, before_retry=hook)
    assert calls == [1, 2]
    assert (len(asked.at), len(asked.smaller_at)) == (2, 0)
    assert facts.code == "PROVIDER_UNAVAILABLE"


def test_a_failure_that_only_its_supplier_can_name_is_that_code():
    asked, facts = Asked(CheckedFailure("AI_PAYMENT_FAILED")), CallFacts()
    with pytest.raises(CheckedFailure):
        make_guard().execute(STAGE, asked.routes, facts=facts)
    assert len(asked.at) == 1
    assert facts.code == "AI_PAYMENT_FAILED"


def test_a_named_failure_is_retried_as_its_code_says():
    asked = Asked(CheckedFailure("PROVIDER_UNAVAILABLE"))
    with pytest.raises(FallbackAnswer):
        make_guard().execute(STAGE, asked.routes)
    assert len(asked.at) == 3


def held(metrics: Metrics, reason: str) -> float:
    return metrics.snapshot().get(f"guard.held.{STAGE}.{reason}", 0)


def test_a_full_bulkhead_holds_the_retry_back():
    metrics = Metrics.off()
    guard = make_guard(metrics, concurrency=1, queue=5)
    end, failed = Event(), Event()

    def attempt(_timeout_s):
        failed.set()
        gevent.sleep(0.05)
        raise ProviderUnavailable

    first = gevent.spawn(guard.call, attempt)
    failed.wait()
    other = gevent.spawn(guard.call, lambda _: end.wait())
    with pytest.raises(ProviderUnavailable):
        first.get()
    assert held(metrics, "bulkhead") == 1
    end.set()
    other.get()


def test_a_breaker_that_is_not_closed_holds_the_retry_back():
    metrics = Metrics.off()
    with pytest.raises(ProviderUnavailable):
        make_guard(metrics, breaker_failures=1).execute(
            STAGE, Routes(Route(TARGET, Asked(ProviderUnavailable())._ask))
        )
    assert held(metrics, "breaker") == 1


def test_a_high_error_rate_holds_the_retry_back():
    metrics = Metrics.off()
    guard = make_guard(metrics, breaker_failures=1_000)
    recent = guard.recent(TARGET)
    for number in range(20):
        recent.add(failed=number % 3 > 0)
    asked = Asked(ProviderUnavailable())
    with pytest.raises(FallbackAnswer):
        guard.execute(STAGE, asked.routes)
    assert (len(asked.at), len(asked.smaller_at)) == (1, 1)
    assert held(metrics, "error_rate") == 1


def test_a_long_input_is_not_sent_twice():
    metrics, asked = Metrics.off(), Asked(ProviderUnavailable())
    guard = make_guard(metrics, limits=HealthLimits(input_length=1_000))
    with pytest.raises(FallbackAnswer):
        guard.execute(STAGE, asked.routes, facts=CallFacts(input_length=1_001))
    assert len(asked.at) == 1
    assert held(metrics, "input_length") == 1


def test_the_retry_budget_is_a_fifth_of_the_calls_but_at_least_three(model):
    server = model(then=DOWN)
    metrics = Metrics.off()
    guard = make_guard(metrics, breaker_failures=1_000, retry_budget=(0.2, 3))
    for _ in range(10):
        gevent.spawn(guard.call, server.ask).join()
    assert server.calls == 13
    assert held(metrics, "retry_budget") == 9


def test_the_retry_budget_grows_with_the_calls():
    budget = RetryBudget(0.2, 3, 10)
    for _ in range(50):
        budget.called()
    assert sum(budget.take() for _ in range(50)) == 10


def test_a_window_forgets():
    window = Window(0.2)
    for _ in range(5):
        window.add()
    assert window.total() == 5
    gevent.sleep(0.25)
    assert window.total() == 0


def test_a_retry_is_charged_before_its_wait(model):
    server = model(DOWN, OK)
    guard = make_guard(retry_budget=(0.2, 1))
    call = gevent.spawn(guard.call, server.ask)
    while not server.calls:
        gevent.sleep(0)
    gevent.sleep(0.05)
    assert not guard.retry_budget(TARGET).take()
    assert call.get() == "200"
