"""What a caller can ask for: bytes, no replay, a queue of its own, a deadline, a decorator."""

from __future__ import annotations

import math
from typing import Any

import gevent
import pytest
from gevent.event import Event

from flightsvc.errors import CallFailed, Overloaded, TooManyWaiters, WaitTimeout
from flightsvc.flight import FlightContext, FlightKey
from tests.flight.conftest import Worker
from tests.flight.flying import QUICK, Caller, Model, ask, await_following, count, roles, values
from tests.processes import wait_until

KEY = FlightKey("scoring", "s1", "an answer")

NESTED = {"a": [{"b": None}]}
STORABLE: list[Any] = [b"", b"\x00\xff" * 3_000, "", "语" * 2_000, None, 0, 1.5, True, [], NESTED]


@pytest.mark.parametrize("value", STORABLE, ids=lambda v: repr(v)[:20])
def test_a_value_comes_back_as_it_was_by_every_way(worker: Worker, value: Any) -> None:
    one, two = worker(), worker()
    began, go = Event(), Event()

    def call(ctx: FlightContext) -> Any:
        began.set()
        go.wait()
        return value

    callers = ask(one, KEY, call)
    assert began.wait(5)
    callers += ask(two, KEY, call)
    await_following(two)
    go.set()
    got = [caller.result() for caller in callers]
    got += [one.run(KEY, call), worker().run(KEY, call)]
    assert [(r.value, type(r.value)) for r in got] == [(value, type(value))] * 4
    assert [r.role for r in got] == ["owner", "follower", "l1", "replay"]


# -- replay=False ---------------------------------------------------------------------------


def test_who_refuses_replays_gets_a_new_answer_and_others_get_it_too(worker: Worker) -> None:
    one, two = worker(), worker()
    model = Model()
    old = one.run(KEY, model)
    new = one.run(KEY, model, replay=False)
    assert (old.value, new.value) == ({"call": 1}, {"call": 2})
    assert new.fence > old.fence
    assert one.run(KEY, model).value == two.run(KEY, model).value == {"call": 2}
    assert two.run(KEY, model, replay=False).value == {"call": 3}


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same worker", "another worker"])
def test_who_refuses_replays_still_joins_a_call_that_is_being_made(
    worker: Worker, elsewhere: bool
) -> None:
    one, two = worker(), worker()
    model = Model(held=True)
    owner = Caller(one, KEY, model)
    model.began.wait()
    joiner = Caller(two if elsewhere else one, KEY, model, replay=False)
    if elsewhere:
        await_following(two)
    model.let_go()
    assert values([owner, joiner]) == [{"call": 1}]


def test_the_last_answer_replays_until_the_new_one_is_there(worker: Worker) -> None:
    one, two = worker(), worker()
    one.run(KEY, Model(value="old"))
    model = Model(held=True, value="new")
    refusing = Caller(one, KEY, model, replay=False)
    model.began.wait()
    assert one.run(KEY, model).value == "old"  # from this worker's memory
    joining = Caller(two, KEY, model)  # there is no answer to replay: one is being made
    await_following(two)
    model.let_go()
    assert values([refusing, joining]) == ["new"]
    assert one.run(KEY, model).value == "new"


def test_who_refuses_replays_is_not_answered_by_a_flight_that_found_one(worker: Worker) -> None:
    one, two = worker(stages={"default": {"l1_ttl_s": 0}}), worker()
    two.run(KEY, Model(value="old"))
    # given callers of one worker at once, of whom some take a replay
    model = Model(takes_s=0.1, value="new")
    taking = Caller(one, KEY, model)
    refusing = Caller(one, KEY, model, replay=False)
    assert taking.result().value == "old"
    assert refusing.result().value == "new"
    assert model.calls == 1


# -- queued=True ----------------------------------------------------------------------------


def test_a_queued_call_says_itself_when_it_runs(worker: Worker) -> None:
    one = worker(**QUICK)
    left_queue = Event()
    states: list[str] = []

    def call(ctx: FlightContext) -> str:
        left_queue.wait()
        ctx.mark_running()
        ctx.mark_running()  # again is no matter
        view = one.inspect(ctx.flight_id)
        assert view is not None
        states.append(view.state.value)
        return "answer"

    caller = Caller(one, KEY, call, queued=True)
    wait_until(lambda: one.inspect(KEY.flight_id) is not None)
    view = one.inspect(KEY.flight_id)
    assert view is not None
    assert view.state == "PENDING"
    # a queue longer than a lease is no matter either
    wait_until(lambda: count(one, "redis.time.beat") >= 7)
    left_queue.set()
    assert caller.result().value == "answer"
    assert states == ["RUNNING"]
    assert count(one, "redis.time.mark_running") == 1


def test_a_full_queue_gives_the_flight_to_a_follower_elsewhere(worker: Worker) -> None:
    one, two = worker(), worker()
    model, full = Model(), Event()

    def overloaded(ctx: FlightContext) -> None:
        full.wait()
        raise Overloaded(retry_after_s=2)

    mine = ask(one, KEY, overloaded, 3, queued=True)
    wait_until(lambda: one.inspect(KEY.flight_id) is not None)
    theirs = ask(two, KEY, model, 3)
    await_following(two)
    full.set()
    # the owner's callers are told, each by an error of its own
    errors = [caller.error() for caller in mine]
    assert [type(error) for error in errors] == [Overloaded] * 3
    assert len({id(error) for error in errors}) == 3
    assert all(getattr(error, "retry_after_s", None) == 2 for error in errors)
    # and the others have an answer, from a call of their own worker
    assert values(theirs) == [{"call": 1}]
    assert roles(theirs) == ["follower", "follower", "owner"]
    assert max(caller.took_s for caller in theirs) < 2
    assert count(one, "flight.ends.scoring.released") == 1
    # it was not counted as an attempt
    view = two.inspect(KEY.flight_id)
    assert view is not None
    assert view.ownerships == 1


def test_overload_of_a_call_that_ran_is_a_failure_like_others(worker: Worker) -> None:
    one = worker()

    def call(ctx: FlightContext) -> None:
        ctx.mark_running()
        raise Overloaded()

    for queued in (True, False):
        error = Caller(one, KEY, call, queued=queued).error()
        assert isinstance(error, CallFailed)
        assert (error.code, error.status) == ("OVERLOAD", 503)


# -- deadlines and caps ---------------------------------------------------------------------


@pytest.mark.parametrize("deadline_s", [0, -1, math.nan, -math.inf, math.inf, 1e308])
def test_a_deadline_that_is_no_time_is_refused_and_nothing_is_called(
    worker: Worker, deadline_s: float
) -> None:
    one, model = worker(), Model()
    with pytest.raises(ValueError, match="deadline_s"):
        one.run(KEY, model, deadline_s=deadline_s)
    gevent.idle()
    assert model.calls == 0


def test_a_very_short_deadline_is_a_timeout_and_the_answer_comes_later(worker: Worker) -> None:
    one, model = worker(), Model(takes_s=0.1)
    assert isinstance(Caller(one, KEY, model, deadline_s=1e-6).error(1), WaitTimeout)
    assert one.run(KEY, model).value == {"call": 1}
    assert model.calls == 1


def test_the_patience_of_a_caller_covers_one_budget_and_a_takeover(worker: Worker) -> None:
    brief = {"timeout_ms": 100, "budget_ms": 100, "retry_delays_ms": [], "wait_ms": 1_000}
    lease = {"heartbeat_ms": 100, "takeover_detect_ms": 900}
    one, two = worker(**lease, stages={"default": brief}), worker(**lease)
    model = Model(held=True)
    owner = Caller(two, KEY, model)
    model.began.wait()
    caller = Caller(one, KEY, model)
    assert isinstance(caller.error(2), WaitTimeout)
    assert 1.0 <= caller.took_s < 1.5
    model.let_go()
    owner.result()


def test_more_waiters_than_the_cap_are_refused_at_once_and_call_nothing(worker: Worker) -> None:
    one = worker(max_waiters=3)
    model, other = Model(held=True), Model()
    waiting = ask(one, KEY, model, 3)
    model.began.wait()
    wait_until(lambda: count(one, "flight.waiters") == 3)
    for key in (KEY, FlightKey("scoring", "another question")):
        refused = Caller(one, key, other)
        error = refused.error(1)
        assert isinstance(error, TooManyWaiters)
        assert (error.status, error.retry_after_s) == (503, 1)
        assert refused.took_s < 0.2
    gevent.sleep(0.1)  # nothing was started in the background either
    assert other.calls == 0
    # a place that is free again can be taken
    waiting[2].leave()
    late = Caller(one, KEY, model)
    model.let_go()
    assert values([*waiting[:2], late]) == [{"call": 1}]
    # who need not wait is never refused
    assert one.run(KEY, other).role == "l1"
