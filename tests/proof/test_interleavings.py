"""The interleavings that stand behind the odd rules of the protocol, each a test by its name.

Those about leases that live are in ``test_live_leases.py``. Those that are tests elsewhere already:

======================================  ===========================================================
a ghost acquire is adopted              ``flight/test_redis_frozen.py``
                                        test_h15_a_call_that_still_runs_when_redis_goes_on_becomes_a_flight_of_all
a ghost acquire is finished             ``flight/test_redis_frozen.py``
                                        test_h15_a_call_that_ended_before_redis_goes_on_is_stored
a ghost acquire is released             ``flight/test_redis_frozen.py``
                                        test_h15_a_call_that_failed_before_redis_goes_on_is_given_back
a ghost takeover                        ``protocol/test_lost_acquires.py``
                                        test_a_takeover_that_was_carried_out_late_is_settled
finish refused by a full Redis          ``flight/test_redis_refuses.py``
                                        test_a_full_redis_keeps_the_owner_and_its_followers_are_told
a lost result                           ``flight/test_h05_lost_events.py``
                                        test_h14_an_answer_that_is_evicted_alone_is_asked_for_again
a lost result, waited for               ``protocol/test_acquire.py``
                                        test_row_05_also_for_one_who_waited_for_the_answer_that_is_gone
a poison request                        ``flight/test_h09_h11_dead_owners.py``
                                        test_h09_a_request_that_kills_its_owners_does_not_kill_them_all
======================================  ===========================================================
"""

from __future__ import annotations

import re
from typing import Any

import gevent

from flightsvc.errors import CallFailed, ProviderUnavailable, WaitTimeout
from flightsvc.flight.coordinator import FlightCoordinator
from tests.faults.incident import Harm
from tests.faults.proxy import Proxy
from tests.faults.resp import command, script
from tests.flight.conftest import Worker
from tests.flight.flying import QUICK, Caller, Model, ask, await_following, count, values
from tests.processes import ROOT, wait_until
from tests.proof.steps import KEY, beat, own
from tests.support.redis_server import RedisServer

#: nobody is taken over for being silent
STEADY: dict[str, Any] = {"heartbeat_ms": 100, "takeover_detect_ms": 6_000}
DETECT_S = QUICK["takeover_detect_ms"] / 1000


# -- an unread failure, and the next question -------------------------------------------------


def test_an_unread_failure_is_told_at_the_next_question_and_not_called_again(
    worker: Worker, redis_server: RedisServer, line: Proxy, names: dict[str, str]
) -> None:
    # given a follower whose read is on its way when the owner fails: anybody may call again now
    one, two = worker(**STEADY), worker(line.url, **STEADY)
    model = Model(held=True, error=ProviderUnavailable())
    first = Caller(one, KEY, model)
    model.began.wait()
    read = line.hold(command("XREAD"))
    followers = ask(two, KEY, mine := Model(), 3)
    assert read.met.wait(5)
    model.let_go()
    assert isinstance(first.error(), CallFailed)
    # when the event is lost before it is read, then all are told what the call ended with
    redis_server.client().delete(names["events"])
    read.let_go()
    for follower in followers:
        error = follower.error()
        assert isinstance(error, CallFailed)
        assert (error.code, error.retryable) == ("PROVIDER_UNAVAILABLE", True)
    assert mine.calls == 0
    # and who has not waited for it may call again
    assert two.run(KEY, mine).value == {"call": 1}


# -- an acquire that is carried out when all is over -----------------------------------------


def test_a_ghost_acquire_that_comes_after_it_was_given_back_dies_by_its_lease(
    worker: Worker, redis_server: RedisServer, line: Proxy, names: dict[str, str]
) -> None:
    # given an acquire that is held up, and a call without Redis that fails and is given back
    one, two = worker(line.url, **QUICK), worker(**QUICK)
    held = line.hold(script("acquire"))
    assert isinstance(Caller(one, KEY, Model(error=ProviderUnavailable())).error(), CallFailed)
    client: Any = redis_server.client()
    wait_until(lambda: client.hget(names["meta"], "owner") == b"", 5)
    # when it arrives after all, then nobody knows that the flight is owned
    held.let_go()
    wait_until(lambda: client.hget(names["meta"], "owner") != b"", 5)
    # and who asks now waits for a lease, no longer, and makes the one call that is left to make
    late = Caller(two, KEY, model := Model())
    assert late.result().value == {"call": 1}
    assert late.took_s < DETECT_S + 1.5
    assert model.calls == 1


# -- an owner that hears of its loss only at its end ----------------------------------------


def test_an_owner_whose_end_is_refused_publishes_nothing(
    worker: Worker, line: Proxy, names: dict[str, str], redis_server: RedisServer
) -> None:
    # given an owner whose heartbeats are held up, so that it is replaced and does not know it
    one, two = worker(line.url, **QUICK), worker(**QUICK)
    mine = ask(one, KEY, old := Model(held=True, value="the old owner's"), 2)
    old.began.wait()
    line.plan(Harm.HOLD, script("beat"), times=None)
    new = Caller(two, KEY, Model(value="the successor's"))
    successor = new.result()
    # when its call ends, then its own callers have the successor's answer, and so has Redis
    old.let_go()
    assert values(mine) == ["the successor's"]
    assert {caller.result().fence for caller in mine} == {successor.fence}
    assert (old.calls, old.ended) == (1, 1)
    assert count(one, "flight.lost.scoring.stale") == 1
    assert redis_server.client().hget(names["meta"], "fence") == str(successor.fence).encode()
    line.heal()


def test_an_answer_that_is_refused_in_the_end_is_not_replayed(worker: Worker, line: Proxy) -> None:
    # given an owner that cannot tell Redis its end: its callers have the answer at once
    one, two = worker(line.url, **QUICK), worker(**QUICK)
    mine = ask(one, KEY, old := Model(held=True, value="the old owner's"), 2)
    old.began.wait()
    for verb in ("beat", "finish"):
        line.plan(Harm.RESET, script(verb), times=None)
    old.let_go()
    assert values(mine) == ["the old owner's"]
    # when another worker has replaced it, and it hears so
    successor = two.run(KEY, Model(value="the successor's"))
    assert (successor.value, successor.role) == ("the successor's", "owner")
    line.heal()
    wait_until(lambda: count(one, "flight.lost.scoring.stale") == 1, 5)
    wait_until(lambda: count(one, "flight.in_flight") == 0, 5)
    # then who asks from now on gets the answer that was accepted, on every worker
    later = one.run(KEY, old)
    assert (later.value, later.fence) == ("the successor's", successor.fence)
    assert old.calls == 1


def test_a_call_that_failed_while_its_flight_was_lost_is_not_repeated(
    worker: Worker, redis_server: RedisServer, names: dict[str, str]
) -> None:
    # given an owner that does not know yet that Redis lost its flight
    quiet = {"heartbeat_ms": 10_000, "takeover_detect_ms": 30_000}
    callers = ask(worker(**quiet), KEY, model := Model(held=True, error=ProviderUnavailable()), 2)
    model.began.wait()
    redis_server.client().delete(*names.values())
    # when its call fails
    model.let_go()
    for caller in callers:
        assert isinstance(caller.error(), CallFailed)
    # then it was the only one, and Redis knows how it ended
    assert model.calls == 1
    assert redis_server.client().hget(names["meta"], "code") == b"PROVIDER_UNAVAILABLE"


# -- an owner that dies late in its budget ---------------------------------------------------


def test_who_waited_for_an_owner_that_dies_late_is_told_to_come_back_and_the_flight_goes_on(
    worker: Worker, owner: FlightCoordinator
) -> None:
    # given an owner that beats for most of its budget, and then is silent
    stage = {"timeout_ms": 1_500, "budget_ms": 1_500, "retry_delays_ms": (), "wait_ms": 2_000}
    two = worker(**QUICK, stages={"default": stage})
    owned = own(owner)
    follower = Caller(two, KEY, model := Model(held=True))
    await_following(two)
    for _ in range(8):
        beat(owner, owned)
        gevent.sleep(0.1)
    # when its successor's call takes longer than the follower's patience
    assert model.began.wait(5)
    error = follower.error()
    # then the follower is told to come back
    assert isinstance(error, WaitTimeout)
    assert (error.status, error.code) == (504, "WAIT_TIMEOUT")
    assert error.retry_after_s
    assert error.flight_id == KEY.flight_id
    # and finds the flight where it was: no other call was made
    again = Caller(two, KEY, model)
    model.let_go()
    assert again.result().value == {"call": 1}
    assert again.result().fence == model.fences[0] > owned.fence
    assert model.calls == 1


# -- the table above -------------------------------------------------------------------------


def test_the_tests_named_above_are_there() -> None:
    named = re.findall(r"``(\S+\.py)``\s+(test_\w+)", __doc__ or "")
    assert len(named) == 8
    for path, name in named:
        assert f"\ndef {name}(" in (ROOT / "tests" / path).read_text(), f"{path} has no {name}"
