from __future__ import annotations

import gevent
import pytest
from gevent.event import Event

from flightsvc.errors import (
    AnswerInvalid,
    CircuitOpen,
    FlightSvcError,
    InvalidInput,
    ProviderRejected,
    ProviderUnavailable,
)
from flightsvc.guard import AiCallGuard, Target

from .build import STAGE, TARGET, idle, make_guard
from .line_model import CUT, DOWN, LineModel


def fail(guard: AiCallGuard, times: int, exc: BaseException | None = None) -> None:
    error = exc or ProviderUnavailable()

    def attempt(_timeout_s):
        raise error

    for _ in range(times):
        with pytest.raises(type(error)):
            guard.execute(STAGE, TARGET, attempt)


def state(guard: AiCallGuard) -> str:
    return guard.breaker(TARGET).state


def refused(guard: AiCallGuard) -> float:
    """The breaker refuses a call; the seconds that it says to wait."""
    with pytest.raises(CircuitOpen) as raised:
        guard.execute(STAGE, TARGET, lambda _: pytest.fail("an attempt was made"))
    assert raised.value.retry_after_s is not None
    return raised.value.retry_after_s


def opened(reset_s: float = 0.1, **more) -> AiCallGuard:
    """A guard whose breaker has opened, its reset time passed."""
    guard = make_guard(breaker_reset_s=reset_s, retry_delays_ms=(), **more)
    fail(guard, 5)
    gevent.sleep(refused(guard))
    return guard


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
    guard.execute(STAGE, TARGET, lambda _: "ok")
    fail(guard, 4)
    assert state(guard) == "closed"


def test_every_attempt_counts_and_targets_do_not_share(model):
    server = model(then=DOWN)
    guard = make_guard()
    for _ in range(2):
        with pytest.raises(ProviderUnavailable):
            guard.execute(STAGE, TARGET, server.ask)
    assert server.calls == 5  # the fifth opened it; no sixth was made
    assert state(guard) == "open"
    assert guard.execute(STAGE, Target("simulated", "large"), lambda _: "ok") == "ok"


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
            guard.execute(STAGE, TARGET, server.ask)
    assert state(guard) == "closed"
    assert server.calls == 5


def test_h35_cut_answers_open_it(model):
    server: LineModel = model(then=CUT)
    guard = make_guard(retry_delays_ms=())
    for _ in range(5):
        with pytest.raises(FlightSvcError):
            guard.execute(STAGE, TARGET, server.ask)
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

    call = gevent.spawn(guard.execute, STAGE, TARGET, attempt)
    started.wait()
    call.kill()
    with pytest.raises(gevent.Timeout), gevent.Timeout(0.01):
        guard.execute(STAGE, TARGET, attempt)
    fail(guard, 1, gevent.Timeout())
    assert state(guard) == "closed"
    assert idle(guard)


def test_an_attempt_cut_short_by_the_budget_says_nothing_by_timing_out():
    guard = make_guard(
        breaker_failures=1, concurrency=1, timeout_ms=1_000, budget_ms=1_000, retry_delays_ms=()
    )
    with guard.bulkhead(STAGE).place(0):
        call = gevent.spawn(guard.execute, STAGE, TARGET, lambda _: gevent.sleep(5))
        gevent.sleep(0.7)
    with pytest.raises(FlightSvcError):
        call.get()
    assert state(guard) == "closed"
    with pytest.raises(FlightSvcError):
        guard.execute(STAGE, TARGET, lambda _: gevent.sleep(5))
    assert state(guard) == "open"


def test_h34_of_twenty_callers_one_tries_and_the_others_are_told_at_once(model):
    server: LineModel = model(then=(0.3, "200"))
    guard = opened()
    calls = [gevent.spawn(guard.execute, STAGE, TARGET, server.ask) for _ in range(20)]
    ended = gevent.wait(calls, count=19)
    assert server.calls <= 1
    for call in ended:
        assert isinstance(call.exception, CircuitOpen)
        assert call.exception.retry_after_s
    assert sorted(call.get() for call in calls if call not in ended) == ["200"]
    assert server.calls == 1
    assert state(guard) == "closed"
    assert guard.execute(STAGE, TARGET, server.ask) == "200"


def test_a_probe_that_fails_opens_it_for_the_whole_time_again():
    guard = opened(reset_s=0.2)
    fail(guard, 1)
    assert state(guard) == "open"
    assert 0 < refused(guard) <= 0.2


def test_h34_a_killed_probe_makes_room_for_the_next():
    guard = opened()
    started = Event()

    def attempt(_timeout_s):
        started.set()
        gevent.sleep(60)

    probe = gevent.spawn(guard.execute, STAGE, TARGET, attempt)
    started.wait()
    refused(guard)
    probe.kill()
    assert state(guard) == "half-open"
    assert guard.execute(STAGE, TARGET, lambda _: "ok") == "ok"
    assert state(guard) == "closed"


@pytest.mark.parametrize("exc", [ProviderRejected(), AnswerInvalid(), ValueError("a bug")])
def test_a_probe_that_says_nothing_leaves_it_to_the_next(exc):
    guard = opened()
    fail(guard, 1, exc)
    assert state(guard) == "half-open"
    fail(guard, 1)
    assert state(guard) == "open"


@pytest.mark.parametrize("late_end", ["200", "503"])
def test_the_late_end_of_a_call_from_before_changes_nothing(late_end):
    guard = make_guard(breaker_reset_s=0.1, retry_delays_ms=())
    started, go = Event(), Event()

    def slow(_timeout_s):
        started.set()
        go.wait()
        if late_end == "503":
            raise ProviderUnavailable
        return late_end

    late = gevent.spawn(guard.execute, STAGE, TARGET, slow)
    started.wait()
    fail(guard, 5)
    probe_started, probe_go = Event(), Event()

    def probing(_timeout_s):
        probe_started.set()
        probe_go.wait()
        return "back"

    gevent.sleep(refused(guard))
    probe = gevent.spawn(guard.execute, STAGE, TARGET, probing)
    probe_started.wait()
    go.set()
    late.join()
    assert state(guard) == "half-open"
    refused(guard)  # the probe still runs
    probe_go.set()
    assert probe.get() == "back"
    assert state(guard) == "closed"


class OneAtATime:
    """A lease that two guards share, as two workers would."""

    def __init__(self) -> None:
        self.holder: str | None = None
        self.taken: list[tuple[Target, float]] = []

    def take(self, target: Target, lease_s: float, /) -> str | None:
        gevent.sleep(0)  # asking takes a round trip
        if self.holder is not None:
            return None
        self.taken.append((target, lease_s))
        self.holder = f"token-{len(self.taken)}"
        return self.holder

    def give_back(self, _target: Target, token: str, /) -> None:
        if self.holder == token:
            self.holder = None


def test_a_lease_lets_one_of_two_workers_try():
    lease = OneAtATime()
    first, second = opened(lease=lease), opened(lease=lease)
    started = Event()

    def attempt(_timeout_s):
        started.set()
        gevent.sleep(60)

    probe = gevent.spawn(first.execute, STAGE, TARGET, attempt)
    started.wait()
    refused(second)
    assert lease.taken == [(TARGET, 20.0)]
    probe.kill()
    assert lease.holder is None
    assert second.execute(STAGE, TARGET, lambda _: "ok") == "ok"
    assert lease.holder is None


def test_a_call_killed_while_it_asks_for_the_lease_makes_room():
    guard = opened(lease=OneAtATime())
    call = gevent.spawn(guard.execute, STAGE, TARGET, lambda _: pytest.fail("called"))
    while state(guard) == "open":
        gevent.sleep(0)
    call.kill()
    assert guard.execute(STAGE, TARGET, lambda _: "ok") == "ok"
