from __future__ import annotations

from time import monotonic

import gevent
import pytest
from gevent.event import Event

from flightsvc.errors import (
    AnswerInvalid,
    CircuitOpen,
    FlightSvcError,
    InvalidInput,
    Overloaded,
    ProviderRateLimited,
    ProviderRejected,
    ProviderUnavailable,
    ProviderUnreachable,
    ResultRejected,
    RetryExhausted,
)
from flightsvc.metrics import Metrics

from .build import STAGE, idle, make_guard
from .line_model import CUT, DOWN, OK


def test_h36_three_attempts_are_three_calls_with_growing_waits(model):
    server = model(then=DOWN)
    guard = make_guard()

    with pytest.raises(RetryExhausted) as raised:
        guard.call(server.ask)

    assert isinstance(raised.value.__cause__, ProviderUnavailable)
    assert server.calls == 3
    first, second, third = server.arrivals
    assert second - first >= 0.1
    assert third - second >= 0.3
    assert idle(guard)


@pytest.mark.parametrize("failing", [DOWN, CUT, (0.0, "429"), (5.0, "200")])
def test_a_failure_that_passes_is_tried_again(model, failing):
    server = model(failing, OK)
    guard = make_guard(timeout_ms=200)
    assert guard.call(server.ask) == "200"
    assert server.calls == 2


@pytest.mark.parametrize(
    "exc",
    [
        ProviderRejected(upstream_status=400),
        AnswerInvalid(),
        ResultRejected(),
        InvalidInput(),
        Overloaded(),
        CircuitOpen(),
        ValueError("a bug"),
    ],
    ids=lambda exc: type(exc).__name__,
)
def test_what_asking_again_does_not_change_is_raised_as_it_is(exc):
    calls = []

    def attempt(_timeout_s):
        calls.append(1)
        raise exc

    guard = make_guard()
    with pytest.raises(type(exc)) as raised:
        guard.call(attempt)
    assert raised.value is exc
    assert len(calls) == 1
    assert idle(guard)


def test_an_error_that_says_it_is_not_retryable_is_not_retried():
    calls = []

    def attempt(_timeout_s):
        calls.append(1)
        error = ProviderUnavailable()
        error.retryable = False
        raise error

    with pytest.raises(ProviderUnavailable):
        make_guard().call(attempt)
    assert len(calls) == 1


def test_a_stage_without_retries_calls_once(model):
    server = model(then=DOWN)
    with pytest.raises(ProviderUnavailable):
        make_guard(retry_delays_ms=()).call(server.ask)
    assert server.calls == 1


def test_retry_after_is_waited_for_where_it_fits(model):
    server = model((0.0, "429 0.6"), OK)
    assert make_guard().call(server.ask) == "200"
    assert server.arrivals[1] - server.arrivals[0] >= 0.6


def test_a_short_retry_after_does_not_shorten_the_wait(model):
    server = model((0.0, "429 0.01"), OK)
    assert make_guard().call(server.ask) == "200"
    assert server.arrivals[1] - server.arrivals[0] >= 0.1


def test_h37_a_retry_after_beyond_the_budget_is_passed_on_at_once(model):
    server = model((0.0, "429 7"))
    started = monotonic()
    with pytest.raises(ProviderRateLimited) as raised:
        make_guard(timeout_ms=2_000, budget_ms=5_000).call(server.ask)
    assert raised.value.retry_after_s == 7
    assert server.calls == 1
    assert monotonic() - started < 5


def test_h37_a_retry_is_never_slept_past_the_budget(model):
    server = model((0.45, "503"), (0.2, "503"))
    started = monotonic()
    with pytest.raises(ProviderUnavailable):  # not BudgetExhausted: there was time left
        make_guard(timeout_ms=500, budget_ms=1_000).call(server.ask)
    assert server.calls == 2  # the wait of 300 ms did not fit
    assert monotonic() - started < 1


def test_the_place_is_free_while_a_call_waits_for_its_retry(model):
    server = model(DOWN, OK, OK)
    guard = make_guard(concurrency=1, queue=0)
    first_failed = Event()

    def attempt(timeout_s):
        try:
            return server.ask(timeout_s)
        except FlightSvcError:
            first_failed.set()
            raise

    waiting = gevent.spawn(guard.call, attempt)
    first_failed.wait()
    assert guard.call(server.ask) == "200"
    assert not waiting.ready()
    assert waiting.get() == "200"


def test_a_retry_that_finds_no_place_ends_with_the_failure_of_its_attempt(model):
    server = model(CUT)
    guard = make_guard(concurrency=1, queue=0)
    failed, done = Event(), Event()

    def failing(timeout_s):
        try:
            return server.ask(timeout_s)
        finally:
            failed.set()

    first = gevent.spawn(guard.call, failing)
    failed.wait()
    other = gevent.spawn(guard.call, lambda _timeout_s: done.wait())
    with pytest.raises(ProviderUnreachable):
        first.get()
    done.set()
    other.get()
    assert server.calls == 1
    assert idle(guard)


def test_no_wait_for_a_retry_that_the_breaker_would_refuse(model):
    server = model(then=DOWN)
    metrics = Metrics.off()
    guard = make_guard(metrics, breaker_failures=1)
    with pytest.raises(ProviderUnavailable):
        guard.call(server.ask)
    assert server.calls == 1
    assert metrics.snapshot().get(f"guard.retries.{STAGE}", 0) == 0


def test_the_cause_of_a_failure_survives_the_retries():
    root = OSError("reset")

    def attempt(_timeout_s):
        raise ProviderUnreachable from root

    with pytest.raises(RetryExhausted) as raised:
        make_guard().call(attempt)
    last = raised.value.__cause__
    assert isinstance(last, ProviderUnreachable)
    assert last.__cause__ is root
