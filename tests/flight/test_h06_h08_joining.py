"""H06 to H08: who comes late, who leaves early, and runs that must not mix."""

from __future__ import annotations

import gevent
import pytest

from flightsvc.flight import FlightContext, FlightKey
from flightsvc.store import Names
from tests.flight.conftest import Worker
from tests.flight.flying import (
    STEADY,
    Caller,
    Model,
    ask,
    await_following,
    count,
    roles,
    values,
)
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "s1", "an answer")


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same worker", "another worker"])
def test_h06_who_comes_just_after_the_end_gets_the_answer(worker: Worker, elsewhere: bool) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    model = Model()
    first = one.run(KEY, model)
    gevent.sleep(0.05)
    late = (two if elsewhere else one).run(KEY, model)
    assert late.value == first.value
    assert late.fence == first.fence
    assert late.role == ("replay" if elsewhere else "l1")
    assert model.calls == 1


def test_h06_runs_do_not_mix(worker: Worker, redis_server: RedisServer, namespace: str) -> None:
    one, two, three = worker(), worker(), worker()
    first = Model(held=True, value="AAA")
    mine = ask(one, KEY, first, 3)
    first.began.wait()
    # given a first run that loses its flight, and a second run
    redis_server.client().delete(*Names(namespace, 16).flight(KEY.flight_id).values())
    second = Model(held=True, value="BBB")
    theirs = ask(two, KEY, second, 3)
    second.began.wait()
    theirs += ask(three, KEY, second, 3)
    await_following(three)
    # when both end, the first before the second
    first.let_go()
    wait_until(lambda: count(one, "flight.lost.scoring.stale"), 5)
    second.let_go()
    # then nobody sees the first run's answer, its own callers included
    assert values(theirs + mine) == ["BBB"]
    assert {caller.result().fence for caller in theirs + mine} == set(second.fences)
    assert count(one, "flight.ends.scoring.stored") == 0
    assert three.run(KEY, second, replay=True).value == "BBB"


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same worker", "another worker"])
def test_h07_the_first_caller_leaves_and_the_others_get_the_answer(
    worker: Worker, elsewhere: bool
) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    model = Model(held=True)
    leaving = Caller(one, KEY, model)
    model.began.wait()
    staying = Caller(two if elsewhere else one, KEY, model)
    if elsewhere:
        await_following(two)
    # when the caller that started the flight is gone
    leaving.leave()
    model.let_go()
    # then the call comes to its end, for whoever waits, and is stored
    assert staying.result().value == {"call": 1}
    assert model.calls == model.ended == 1
    view = one.inspect(KEY.flight_id)
    assert view is not None
    assert view.state == "SUCCEEDED"
    assert worker(**STEADY).run(KEY, model).role == "replay"


def test_h07_all_callers_leave_and_the_answer_is_stored(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    model = Model(held=True)
    leaving = ask(one, KEY, model, 3)
    model.began.wait()
    for caller in leaving:
        caller.leave()
    model.let_go()
    wait_until(lambda: count(one, "flight.ends.scoring.stored"), 5)
    assert two.run(KEY, model).value == {"call": 1}
    assert model.calls == 1


def test_h08_a_follower_leaves_and_another_joins(worker: Worker) -> None:
    one, two, three = worker(**STEADY), worker(**STEADY), worker(**STEADY)
    model = Model(held=True)
    owner = Caller(one, KEY, model)
    model.began.wait()
    leaving = Caller(two, KEY, model)
    await_following(two)
    leaving.leave()
    joining = ask(two, KEY, model, 2) + ask(three, KEY, model, 2)
    await_following(three)
    model.let_go()
    assert values([owner, *joining]) == [{"call": 1}]
    assert roles(joining) == ["follower"] * 4
    assert model.calls == 1


def test_h08_callers_that_come_and_go_at_random_do_no_harm(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    model = Model(takes_s=0.4)
    staying = ask(one, KEY, model, 5) + ask(two, KEY, model, 5)
    for n in range(40):
        passing = Caller((one, two)[n % 2], KEY, model)
        gevent.sleep(0.005)
        passing.leave()
    assert values(staying) == [{"call": 1}]
    assert model.calls == 1
    for flights in (one, two):
        assert count(flights, "flight.waiters") == 0


def test_h08_a_callers_own_time_out_is_its_own(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    model = Model(held=True)
    staying = ask(one, KEY, model) + ask(two, KEY, model)
    model.began.wait()
    for flights in (one, two):
        with pytest.raises(gevent.Timeout), gevent.Timeout(0.1):
            flights.run(KEY, model)
        assert count(flights, "flight.left.scoring") == 1
    model.let_go()
    assert values(staying) == [{"call": 1}]


def test_a_caller_that_leaves_from_inside_its_call_is_no_special_case(worker: Worker) -> None:
    one = worker(**STEADY)
    callers: list[Caller] = []

    def call(ctx: FlightContext) -> str:
        callers[0].leave()
        return "answer"

    callers += ask(one, KEY, call, 2)
    assert callers[1].result().value == "answer"
