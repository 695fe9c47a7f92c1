from __future__ import annotations

from time import monotonic

import gevent
import pytest
from gevent.event import Event

from flightsvc.errors import Overloaded
from flightsvc.guard import Route, Routes
from flightsvc.guard.bulkhead import Bulkhead

from .build import STAGE, TARGET, PlainGuard, idle, make_guard


class Holder:
    """A call that holds a place until it is told to end."""

    def __init__(self, guard: PlainGuard) -> None:
        self.started, self.end = Event(), Event()
        self.greenlet = gevent.spawn(guard.call, self._attempt)

    def _attempt(self, _timeout_s: float) -> None:
        self.started.set()
        self.end.wait()


def until_queued(guard: PlainGuard, number: int) -> None:
    while guard.bulkhead(STAGE).queued() < number:
        gevent.sleep(0)


def test_a_full_queue_refuses_at_once_and_before_any_attempt():
    guard = make_guard(concurrency=1, queue=1)
    running = Holder(guard)
    running.started.wait()
    queued = Holder(guard)
    until_queued(guard, 1)

    calls: list[str] = []
    with pytest.raises(Overloaded) as raised:
        guard.call(lambda _: calls.append("call"), on_admitted=lambda: calls.append("in"))
    assert calls == []
    assert raised.value.retry_after_s
    assert not queued.started.is_set()

    running.end.set()
    queued.end.set()
    gevent.joinall([running.greenlet, queued.greenlet], raise_error=True)
    assert idle(guard)


def test_the_queue_is_served_in_order_and_nobody_overtakes():
    guard = make_guard(concurrency=1, queue=10)
    holder = Holder(guard)
    holder.started.wait()
    order: list[int] = []
    calls = []
    for number in range(5):
        call = gevent.spawn(guard.call, lambda _, n=number: order.append(n))
        calls.append(call)
        until_queued(guard, number + 1)

    late: list[gevent.Greenlet[..., None]] = []

    def come_late(_):
        late.append(gevent.spawn(guard.call, lambda _: order.append(99)))

    holder.greenlet.link(come_late)  # asks right when the place is handed on
    holder.end.set()
    gevent.joinall(calls, raise_error=True)
    gevent.joinall(late, raise_error=True)
    assert order == [0, 1, 2, 3, 4, 99]
    assert idle(guard)


def test_waiting_in_the_queue_ends_within_the_budget_as_overload():
    guard = make_guard(concurrency=1, queue=5, timeout_ms=300, budget_ms=300, retry_delays_ms=())
    places = guard.bulkhead(STAGE)
    calls: list[int] = []
    with places.place(0):  # longer than any budget
        started = monotonic()
        with pytest.raises(Overloaded) as raised:
            guard.call(lambda _: calls.append(1))
        assert monotonic() - started >= 0.2
    assert calls == []
    assert raised.value.retry_after_s
    assert idle(guard)


def test_time_in_the_queue_shortens_the_attempt():
    guard = make_guard(concurrency=1, timeout_ms=1_000, budget_ms=1_000, retry_delays_ms=())
    given: list[float] = []
    with guard.bulkhead(STAGE).place(0):
        call = gevent.spawn(guard.call, given.append)
        gevent.sleep(0.3)
    call.get()
    assert 0 < given[0] <= 0.7


def test_a_call_killed_in_the_queue_leaves_it():
    guard = make_guard(concurrency=1, queue=1)
    running = Holder(guard)
    running.started.wait()
    queued = Holder(guard)
    until_queued(guard, 1)

    queued.greenlet.kill()
    assert guard.bulkhead(STAGE).queued() == 0
    third = Holder(guard)  # the queue of one has room again
    until_queued(guard, 1)
    running.end.set()
    third.started.wait()
    third.end.set()
    gevent.joinall([running.greenlet, third.greenlet], raise_error=True)
    assert idle(guard)


def test_a_call_killed_while_it_runs_hands_its_place_on():
    guard = make_guard(concurrency=1, queue=1)
    running = Holder(guard)
    running.started.wait()
    queued = Holder(guard)
    until_queued(guard, 1)

    running.greenlet.kill()
    queued.started.wait()
    queued.end.set()
    queued.greenlet.get()
    assert idle(guard)


def test_a_call_killed_just_as_it_is_given_a_place_hands_it_on():
    guard = make_guard(concurrency=1, queue=2)
    with guard.bulkhead(STAGE).place(0):
        second, third = Holder(guard), Holder(guard)
        until_queued(guard, 2)
        second.greenlet.kill(block=False)  # reaches it when the place is its own already
    third.started.wait()
    assert not second.started.is_set()
    third.end.set()
    third.greenlet.get()
    assert idle(guard)


def test_no_place_is_lost_when_it_comes_free_just_as_the_wait_is_up():
    places = Bulkhead(places=1, queue=1)

    def queue() -> None:
        with places.place(0.05):
            pass

    with places.place(0):
        waiter = gevent.spawn(queue)
        while not places.queued():
            gevent.sleep(0)
        until = monotonic() + 0.06
        while monotonic() < until:  # the hub does not run: the timer is due when it does
            pass
    waiter.get()  # it got the place: the hand-over came first
    assert (places.in_use(), places.queued()) == (0, 0)


def test_stages_do_not_share_places():
    guard = make_guard(concurrency=1, queue=0)
    with guard.bulkhead(STAGE).place(0):
        assert guard.execute("follow_up", Routes(Route(TARGET, lambda _: "in"))) == "in"
        with pytest.raises(Overloaded):
            guard.call(lambda _: "in")
