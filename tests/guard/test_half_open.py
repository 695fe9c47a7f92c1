from __future__ import annotations

from typing import Any

import gevent
import pytest
from gevent.event import Event

from flightsvc.errors import (
    AnswerInvalid,
    CircuitOpen,
    ProviderRejected,
    ProviderUnavailable,
)
from flightsvc.guard import Target
from flightsvc.guard.shared import LoneWorker

from .build import TARGET, fail, make_guard, opened, refused, state
from .line_model import LineModel


def test_h34_of_twenty_callers_one_tries_and_the_others_are_told_at_once(model):
    server: LineModel = model(then=(0.3, "200"))
    guard = opened()
    calls = [gevent.spawn(guard.call, server.ask) for _ in range(20)]
    ended = gevent.wait(calls, count=19)
    assert server.calls <= 1
    for call in ended:
        assert isinstance(call.exception, CircuitOpen)
        assert call.exception.retry_after_s
    assert sorted(call.get() for call in calls if call not in ended) == ["200"]
    assert server.calls == 1
    assert state(guard) == "closed"
    assert guard.call(server.ask) == "200"


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

    probe = gevent.spawn(guard.call, attempt)
    started.wait()
    refused(guard)
    probe.kill()
    assert state(guard) == "half-open"
    assert guard.call(lambda _: "ok") == "ok"
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

    late = gevent.spawn(guard.call, slow)
    started.wait()
    fail(guard, 5)
    probe_started, probe_go = Event(), Event()

    def probing(_timeout_s):
        probe_started.set()
        probe_go.wait()
        return "back"

    gevent.sleep(refused(guard))
    probe = gevent.spawn(guard.call, probing)
    probe_started.wait()
    go.set()
    late.join()
    assert state(guard) == "half-open"
    refused(guard)  # the probe still runs
    probe_go.set()
    assert probe.get() == "back"
    assert state(guard) == "closed"


class OneAtATime(LoneWorker):
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
    first, second = opened(shared=lease), opened(shared=lease)
    started = Event()

    def attempt(_timeout_s):
        started.set()
        gevent.sleep(60)

    probe = gevent.spawn(first.call, attempt)
    started.wait()
    refused(second)
    assert lease.taken == [(TARGET, 20.0)]
    probe.kill()
    assert lease.holder is None
    assert second.call(lambda _: "ok") == "ok"
    assert lease.holder is None


def test_a_call_killed_while_it_asks_for_the_lease_makes_room():
    guard = opened(shared=OneAtATime())
    call = gevent.spawn(guard.call, lambda _: pytest.fail("called"))
    while state(guard) == "open":
        gevent.sleep(0)
    call.kill()
    assert guard.call(lambda _: "ok") == "ok"


def test_a_long_answer_lets_the_others_in_as_soon_as_it_begins():
    lease = OneAtATime()
    first, second = opened(shared=lease), opened(shared=lease)
    began, asked, go = Event(), Event(), Event()
    told: list[Any] = []

    def attempt(_timeout_s):
        asked.set()
        began.wait()
        told[0]()
        go.wait()
        raise ProviderUnavailable

    probe = gevent.spawn(first.call, attempt, on_attempt=told.append)
    asked.wait()
    refused(second)
    began.set()
    gevent.sleep(0.05)
    assert state(first) == "closed"
    assert lease.holder is None
    assert first.call(lambda _: "ok") == second.call(lambda _: "ok") == "ok"
    go.set()
    probe.join()
    assert state(first) == "closed"  # its late end is one from before
