"""Callers that leave: the call is stopped when nobody in the cluster waits for it any more."""

from __future__ import annotations

import time

import gevent
import pytest

from flightsvc.flight import FlightKey, SingleFlight
from flightsvc.store import Names
from tests.faults.incident import Harm
from tests.faults.proxy import Proxy
from tests.faults.resp import script
from tests.flight.conftest import Worker
from tests.flight.flying import QUICK, STEADY, Caller, Model, count
from tests.flight.streaming import KEY, Talker, followed, listen, text
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

#: time in seconds within which a call that nobody wants is stopped
STOPPED_S = 3.0


def stopped(talker: Talker, within_s: float = STOPPED_S) -> float:
    """Wait until the call was stopped; how long that took."""
    began = time.monotonic()
    wait_until(lambda: talker.stopped == 1, within_s)
    return time.monotonic() - began


def test_the_call_stops_when_its_last_caller_has_left(worker: Worker) -> None:
    one = worker(**STEADY)
    talker = Talker(text(10), held=True)
    listeners = listen(one, talker, 3)
    plain = Caller(one, KEY, talker)
    talker.began.wait()
    plain.leave()
    for listener in listeners[1:]:
        listener.leave()
    gevent.sleep(0.3)
    # one is left
    assert (talker.stopped, talker.ended) == (0, 0)
    listeners[0].leave()
    stopped(talker)
    assert talker.contexts[0].cancelled.is_set()
    wait_until(lambda: count(one, "flight.ends.chat.abandoned") == 1, 2)
    assert count(one, "flight.in_flight") == 0
    assert one.inspect(KEY.flight_id) is None


def test_who_comes_after_that_begins_anew(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(3), held=True)
    listen(one, talker)[0].leave()
    first = listen(one, talker)[0]
    talker.began.wait()
    talker.let_go(2)
    first.heard(2)
    first.leave()
    stopped(talker)
    again = Talker(text(3, "again"))
    for flights in (one, two):
        late = listen(flights, again)[0]
        assert late.result().value == {"chunks": 3}
        assert late.chunks in (text(3, "again"), [])
    assert again.calls == 1


def test_followers_elsewhere_keep_the_call_alive(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(6), held=True)
    mine = listen(one, talker)[0]
    talker.began.wait()
    theirs = listen(two, talker)[0]
    followed(two)
    talker.let_go(2)
    mine.heard(2)
    mine.leave()
    gevent.sleep(0.5)
    talker.let_go()
    assert theirs.result().value == {"chunks": 6}
    assert theirs.chunks == text(6)
    assert (talker.calls, talker.stopped) == (1, 0)


@pytest.mark.parametrize("first", ["owner's", "follower's"])
def test_the_call_stops_when_all_callers_of_all_workers_have_left(
    worker: Worker, first: str
) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(6), held=True)
    mine = listen(one, talker)[0]
    talker.began.wait()
    theirs = listen(two, talker)[0]
    followed(two)
    leaving = [mine, theirs] if first == "owner's" else [theirs, mine]
    leaving[0].leave()
    gevent.sleep(0.3)
    assert talker.stopped == 0
    leaving[1].leave()
    stopped(talker)
    wait_until(lambda: one.inspect(KEY.flight_id) is None, 2)
    assert talker.calls == 1


def test_with_the_heartbeat_of_the_service_it_takes_3_seconds_at_most(worker: Worker) -> None:
    one, two = worker(), worker()
    talker = Talker(text(6), held=True)
    mine = listen(one, talker)[0]
    talker.began.wait()
    theirs = listen(two, talker)[0]
    followed(two)
    mine.leave()
    gevent.sleep(0.2)
    theirs.leave()
    assert stopped(talker) < STOPPED_S


def test_the_lease_of_a_killed_follower_ends_by_itself(
    worker: Worker, redis_server: RedisServer, namespace: str
) -> None:
    # given a follower whose worker is killed: nobody gives up its lease
    one = worker(**STEADY)
    talker = Talker(text(6), held=True)
    mine = listen(one, talker)[0]
    talker.began.wait()
    interest, client = Names(namespace, 16).flight(KEY.flight_id)["interest"], redis_server.client()
    seconds, micros = client.time()
    client.hset(interest, "killed", int(seconds) * 1000 + int(micros) // 1000 + 1_000)
    client.pexpire(interest, 30_000)
    mine.leave()
    gevent.sleep(0.6)
    assert talker.stopped == 0
    # then the call is stopped within 3 s of the lease's end
    assert stopped(talker, 0.4 + STOPPED_S)


@pytest.mark.one_server
def test_who_comes_while_the_call_is_being_stopped_is_not_cut_off(
    worker: Worker, redis_server: RedisServer
) -> None:
    with Proxy(redis_server) as wire:
        one = worker(url=wire.url, **STEADY, redis_timeout_ms=5_000)
        talker = Talker(text(4), held=True)
        leaving = listen(one, talker)[0]
        talker.began.wait()
        talker.let_go(2)
        leaving.heard(2)
        # given an owner that asks whether it may stop, and is told so, late
        incident = wire.plan(Harm.HOLD_REPLY, script("abandon"))
        leaving.leave()
        assert incident.met.wait(5)
        # when somebody comes in between
        staying = listen(one, talker)[0]
        staying.heard(2)
        incident.let_go()
        # then the call goes on, under a new fence
        wait_until(lambda: count(one, "flight.lost.chat.regained") == 1, 5)
        other = listen(worker(**STEADY), talker)[0]
        other.heard(2)
        talker.let_go()
        assert staying.result().value == other.result().value == {"chunks": 4}
        assert staying.chunks == other.chunks == text(4)
        assert staying.voided == []
        assert (talker.calls, talker.stopped) == (1, 0)
        assert staying.result().fence > talker.fences[0]


@pytest.mark.one_server
def test_who_joins_while_its_worker_leaves_the_flight_is_fed(
    worker: Worker, redis_server: RedisServer
) -> None:
    with Proxy(redis_server) as wire:
        one, two = worker(**STEADY), worker(url=wire.url, **STEADY, redis_timeout_ms=5_000)
        talker = Talker(text(4), held=True)
        owner = listen(one, talker)[0]
        talker.began.wait()
        leaving = listen(two, talker)[0]
        followed(two)
        incident = wire.plan(Harm.HOLD, script("leave"))
        leaving.leave()
        assert incident.met.wait(5)
        joining = listen(two, talker)[0]
        incident.let_go()
        followed(two, 2)
        owner.leave()
        talker.let_go()
        assert joining.result().value == {"chunks": 4}
        assert joining.chunks == text(4)
        assert (talker.calls, talker.stopped) == (1, 0)


def test_a_flight_of_another_stage_comes_to_its_end_and_is_stored(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    key, talker = FlightKey("evaluation", "s1"), Talker(text(3), held=True)
    with one.stream(key, talker):
        talker.began.wait()
    talker.let_go()
    wait_until(lambda: count(one, "flight.ends.evaluation.stored") == 1, 5)
    assert two.run(key, Model()).value == {"chunks": 3}
    assert (talker.calls, talker.stopped) == (1, 0)


def test_a_call_that_nobody_coordinates_stops_too() -> None:
    alone = SingleFlight.from_url("", mode="local")
    try:
        talker = Talker(text(3), held=True)
        listener = listen(alone, talker)[0]
        talker.began.wait()
        listener.leave()
        stopped(talker)
        wait_until(lambda: count(alone, "flight.ends.chat.abandoned") == 1, 2)
    finally:
        alone.close()


@pytest.mark.one_server
def test_while_redis_does_not_answer_the_call_goes_on_and_stops_when_it_does(
    worker: Worker, redis_server: RedisServer
) -> None:
    with Proxy(redis_server) as wire:
        one = worker(url=wire.url, **STEADY)
        talker = Talker(text(3), held=True)
        listener = listen(one, talker)[0]
        talker.began.wait()
        wire.plan(Harm.RESET, b"", times=None)
        listener.leave()
        gevent.sleep(0.5)
        assert talker.stopped == 0
        wire.heal()
        stopped(talker)


@pytest.mark.parametrize("order", [0, 1])
def test_callers_that_come_and_go_at_random_do_no_harm(worker: Worker, order: int) -> None:
    one, two = worker(**QUICK), worker(**QUICK)
    talker = Talker(text(60), gap_s=0.01)
    staying = listen((one, two)[order], talker)[0]
    for n in range(60):
        passing = listen((one, two)[n % 2], talker)[0]
        gevent.sleep(0.008)
        passing.leave()
    assert staying.result().value == {"chunks": 60}
    assert staying.chunks == text(60)
    assert talker.calls == 1
    for flights in (one, two):
        assert count(flights, "flight.waiters") == 0


def test_a_follower_that_only_waits_counts_too(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(3), held=True)
    mine = listen(one, talker)[0]
    talker.began.wait()
    plain = Caller(two, KEY, talker)
    followed(two)
    mine.leave()
    gevent.sleep(0.4)
    assert talker.stopped == 0
    plain.leave()
    stopped(talker)


