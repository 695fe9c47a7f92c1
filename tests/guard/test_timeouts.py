from __future__ import annotations

from time import monotonic

import gevent
import pytest

from flightsvc.errors import (
    AttemptTimeout,
    BudgetExhausted,
    ProviderTimeout,
    ProviderUnavailable,
    RetryExhausted,
)

from .build import STAGE, idle, make_guard


def test_an_attempt_that_takes_too_long_is_ended_and_tried_again():
    calls: list[float] = []

    def attempt(timeout_s):
        calls.append(timeout_s)
        gevent.sleep(60)

    guard = make_guard(timeout_ms=150)
    with pytest.raises(RetryExhausted) as raised:
        guard.call(attempt)
    assert isinstance(raised.value.__cause__, AttemptTimeout)
    assert len(calls) == 3
    assert all(0 < timeout_s <= 0.15 for timeout_s in calls)
    assert idle(guard)


def test_the_attempt_is_told_its_time_so_that_it_closes_its_socket_first(model):
    server = model(then=(60.0, "200"))
    guard = make_guard(timeout_ms=300, retry_delays_ms=())
    with pytest.raises(ProviderTimeout):  # its own socket timeout, not the guard's timer
        guard.call(server.ask)


def test_the_last_attempt_gets_only_what_is_left_of_the_budget():
    calls: list[float] = []

    def attempt(timeout_s):
        calls.append(timeout_s)
        gevent.sleep(60)

    guard = make_guard(timeout_ms=600, budget_ms=1_200)
    started = monotonic()
    with pytest.raises(BudgetExhausted) as raised:
        guard.call(attempt)
    assert monotonic() - started >= 1.2
    assert len(calls) == 2
    assert calls[1] <= 0.5  # 1.2 - 0.6 - 0.1
    assert isinstance(raised.value.__cause__, AttemptTimeout)


def test_a_budget_used_up_before_the_first_attempt_makes_none():
    calls: list[float] = []
    guard = make_guard(timeout_ms=200, budget_ms=200, retry_delays_ms=())
    with pytest.raises(BudgetExhausted):
        guard.call(calls.append, on_admitted=lambda: gevent.sleep(0.21))
    assert calls == []
    assert idle(guard)


def test_a_failure_that_says_when_to_come_back_is_kept_at_the_budgets_end():
    def attempt(_timeout_s):
        gevent.sleep(0.25)
        raise ProviderUnavailable(retry_after_s=3)

    guard = make_guard(timeout_ms=300, budget_ms=300, retry_delays_ms=())
    with pytest.raises(ProviderUnavailable) as raised:
        guard.call(attempt)
    assert raised.value.retry_after_s == 3


def test_a_timeout_of_the_attempt_itself_passes_as_it_is():
    own = gevent.Timeout(0.01)

    def attempt(_timeout_s):
        with own:
            gevent.sleep(60)

    guard = make_guard()
    with pytest.raises(gevent.Timeout) as raised:
        guard.call(attempt)
    assert raised.value is own
    assert idle(guard)


def test_a_timeout_that_the_attempt_deals_with_is_nobody_elses():
    def attempt(_timeout_s):
        try:
            with gevent.Timeout(0.01):
                gevent.sleep(60)
        except gevent.Timeout:
            return "partly"

    assert make_guard().call(attempt) == "partly"


@pytest.mark.parametrize("where", ["running", "queued", "retrying"])
def test_a_timeout_from_further_out_passes_as_it_is(where):
    guard = make_guard(concurrency=1, retry_delays_ms=(10_000,))
    calls: list[int] = []

    def attempt(_timeout_s):
        calls.append(1)
        if where == "retrying":
            raise ProviderUnavailable
        gevent.sleep(60)

    holder = guard.bulkhead(STAGE).place(0)
    if where == "queued":
        holder.__enter__()
    outer = gevent.Timeout(0.05)
    with pytest.raises(gevent.Timeout) as raised, outer:
        guard.call(attempt)
    assert raised.value is outer
    assert len(calls) == (where != "queued")
    if where == "queued":
        holder.__exit__(None, None, None)
    assert idle(guard)


def test_no_timer_is_left_behind():
    guard = make_guard(timeout_ms=30, retry_delays_ms=())
    guard.call(lambda _: "quick")
    gevent.sleep(0.1)  # a timer left behind would fire here
