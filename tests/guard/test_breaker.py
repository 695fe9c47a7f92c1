from __future__ import annotations

import gevent
import pytest
from gevent.event import Event

from flightsvc.errors import (
    AnswerInvalid,
    FlightSvcError,
    InvalidInput,
    ProviderRejected,
    ProviderUnavailable,
    RetryExhausted,
)
from flightsvc.guard import Target

from .build import STAGE, fail, idle, make_guard, refused, state
from .line_model import CUT, DOWN, LineModel


def test_failures_in_a_row_open_it_and_it_says_when_to_come_back():
    guard = make_guard(retry_delays_ms=())
    fail(guard, 4)
    assert state(guard) == "closed"
    fail(guard, 1)
    assert state(guard) == "open"
    assert 0 < refused(guard) <= 30
    assert idle(guard)


def test_a_success_ends_the_row():
    guard = make_guard(retry_delays_ms=())
    fail(guard, 4)
    guard.call(lambda _: "ok")
    fail(guard, 4)
    assert state(guard) == "closed"


def test_every_attempt_counts_and_targets_do_not_share(model):
    server = model(then=DOWN)
    guard = make_guard()
    for _ in range(2):
        with pytest.raises((RetryExhausted, ProviderUnavailable)):
            guard.call(server.ask)
    assert server.calls == 5  # the fifth opened it; no sixth was made
    assert state(guard) == "open"
    assert guard.call(lambda _: "ok", Target("simulated", "large")) == "ok"


def test_nobody_queues_for_a_model_that_is_cut_off():
    guard = make_guard(retry_delays_ms=(), concurrency=1)
    fail(guard, 5)
    with guard.bulkhead(STAGE).place(0):
        refused(guard)  # at once, though the place is taken


@pytest.mark.parametrize("line", ["400", "401", "junk"])
def test_h35_the_callers_own_faults_do_not_open_it(model, line):
    server: LineModel = model(then=(0.0, line))
    guard = make_guard(breaker_failures=2)
    for _ in range(5):
        with pytest.raises((ProviderRejected, AnswerInvalid)):
            guard.call(server.ask)
    assert state(guard) == "closed"
    assert server.calls == 5


def test_h35_cut_answers_open_it(model):
    server: LineModel = model(then=CUT)
    guard = make_guard(retry_delays_ms=())
    for _ in range(5):
        with pytest.raises(FlightSvcError):
            guard.call(server.ask)
    assert state(guard) == "open"


@pytest.mark.parametrize("exc", [ProviderRejected(), InvalidInput(), ValueError("a bug")])
def test_h35_what_says_nothing_does_not_end_a_row_of_failures_either(exc):
    guard = make_guard(retry_delays_ms=())
    fail(guard, 4)
    fail(guard, 1, exc)
    fail(guard, 1)
    assert state(guard) == "open"


def test_h35_kills_and_foreign_timeouts_do_not_count():
    guard = make_guard(breaker_failures=1)
    started = Event()

    def attempt(_timeout_s):
        started.set()
        gevent.sleep(60)

    call = gevent.spawn(guard.call, attempt)
    started.wait()
    call.kill()
    with pytest.raises(gevent.Timeout), gevent.Timeout(0.01):
        guard.call(attempt)
    fail(guard, 1, gevent.Timeout())
    assert state(guard) == "closed"
    assert idle(guard)


def test_an_attempt_cut_short_by_the_budget_says_nothing_by_timing_out():
    guard = make_guard(
        breaker_failures=1, concurrency=1, timeout_ms=1_000, budget_ms=1_000, retry_delays_ms=()
    )
    with guard.bulkhead(STAGE).place(0):
        call = gevent.spawn(guard.call, lambda _: gevent.sleep(5))
        gevent.sleep(0.7)
    with pytest.raises(FlightSvcError):
        call.get()
    assert state(guard) == "closed"
    with pytest.raises(FlightSvcError):
        guard.call(lambda _: gevent.sleep(5))
    assert state(guard) == "open"
