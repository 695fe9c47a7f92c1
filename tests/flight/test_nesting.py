"""Invariant 11: a flight that would wait for itself gets an error at once, not a deadlock."""

from __future__ import annotations

from typing import Any

import gevent
import pytest
from gevent.event import Event
from gevent.pool import Pool

from flightsvc.errors import CallFailed, FlightSvcError, NestedFlight
from flightsvc.flight import FlightContext, FlightKey, SingleFlight
from tests.flight.conftest import Worker
from tests.flight.flying import Caller, Model, ask

A, B, C = (FlightKey("scoring", name) for name in "ABC")


def code_of(flights: SingleFlight, key: FlightKey, call: Any) -> str:
    """What a nested question ends with: an error's code, or ``ok``."""
    try:
        flights.run(key, call)
    except FlightSvcError as error:
        return error.code
    return "ok"


def test_a_flight_that_asks_for_itself_is_told_at_once(worker: Worker) -> None:
    one = worker()
    caller = Caller(one, A, lambda ctx: code_of(one, A, Model()))
    assert caller.result(2).value == "FLIGHT_NESTED"
    assert caller.took_s < 1


def test_what_the_call_does_not_catch_fails_the_flight(worker: Worker) -> None:
    one = worker()
    caller = Caller(one, A, lambda ctx: one.run(A, Model()).value)
    error = caller.error(2)
    assert isinstance(error, CallFailed)
    assert (error.code, error.retryable) == ("FLIGHT_NESTED", False)
    assert isinstance(error.__cause__, NestedFlight)


def test_a_flight_may_ask_for_others(worker: Worker) -> None:
    one = worker()

    def call(ctx: FlightContext) -> Any:
        return [one.run(key, Model(value=key.parts[0])).value for key in (B, C, B)]

    assert Caller(one, A, call).result().value == ["B", "C", "B"]


def test_the_same_question_of_another_tenant_is_another_flight(worker: Worker) -> None:
    one = worker()
    other = FlightKey("scoring", "A", tenant="other")
    assert Caller(one, A, lambda ctx: code_of(one, other, Model())).result().value == "ok"


@pytest.mark.parametrize("how", ["spawn", "pool"])
def test_greenlets_that_a_call_starts_belong_to_it(worker: Worker, how: str) -> None:
    one = worker()

    def call(ctx: FlightContext) -> Any:
        if how == "spawn":
            return gevent.spawn(code_of, one, A, Model()).get()
        return Pool(2).apply(code_of, (one, A, Model()))

    assert Caller(one, A, call).result(2).value == "FLIGHT_NESTED"


def test_a_circle_over_two_keys_that_one_flight_began(worker: Worker) -> None:
    one = worker()

    def inner(ctx: FlightContext) -> Any:
        return code_of(one, A, Model())

    caller = Caller(one, A, lambda ctx: one.run(B, inner).value)
    assert caller.result(2).value == "FLIGHT_NESTED"


def test_a_circle_over_two_keys_that_began_apart(worker: Worker) -> None:
    one = worker()
    b_began = Event()

    def a(ctx: FlightContext) -> Any:
        b_began.wait()
        return ["a", code_of(one, B, Model())]

    def b(ctx: FlightContext) -> Any:
        b_began.set()
        gevent.idle()
        return ["b", code_of(one, A, Model())]

    callers = ask(one, A, a) + ask(one, B, b)
    # one of the two is told, and so the other has its answer
    told = sorted(caller.result(2).value[1] for caller in callers)
    assert told == ["FLIGHT_NESTED", "ok"]


def test_a_circle_over_three_keys(worker: Worker) -> None:
    one = worker()
    after = {A: B, B: C, C: A}
    all_fly = Event()

    def calling(key: FlightKey) -> Any:
        def call(ctx: FlightContext) -> Any:
            if key is C:
                all_fly.set()
            all_fly.wait()
            return code_of(one, after[key], Model())

        return call

    callers = [Caller(one, key, calling(key)) for key in (A, B, C)]
    told = sorted(caller.result(2).value for caller in callers)
    assert told == ["FLIGHT_NESTED", "ok", "ok"]


def test_two_flights_that_wait_for_a_third_are_no_circle(worker: Worker) -> None:
    one = worker()
    model = Model(takes_s=0.1)
    callers = [Caller(one, key, lambda ctx: one.run(C, model).value) for key in (A, B)]
    assert [caller.result().value for caller in callers] == [{"call": 1}] * 2


def test_who_asks_after_its_own_call_is_no_longer_inside(worker: Worker) -> None:
    one = worker()
    late: list[Any] = []

    def call(ctx: FlightContext) -> str:
        late.append(gevent.spawn_later(0.1, code_of, one, A, Model()))
        return "answer"

    assert Caller(one, A, call).result().value == "answer"
    assert late[0].get() == "ok"


def test_a_call_may_ask_for_the_replay_of_its_own_last_answer(worker: Worker) -> None:
    one = worker()
    one.run(A, Model(value="last time's"))
    caller = Caller(one, A, lambda ctx: one.run(A, Model()).value + ", and more", replay=False)
    assert caller.result(2).value == "last time's, and more"
