"""Invariant 9, and keys that stand for two requests."""

from __future__ import annotations

from typing import Any

import pytest

from flightsvc.errors import KeyConflict
from flightsvc.flight import FlightKey
from tests.flight.conftest import Worker
from tests.flight.flying import STEADY, Caller, Model, ask, await_following, values
from tests.processes import wait_until

DIFFERENT = [
    pytest.param({"tenant": "a"}, {"tenant": "b"}, id="tenants"),
    pytest.param({"tenant": "a"}, {}, id="a tenant and none"),
    pytest.param({"variant": "v1"}, {"variant": "v2"}, id="variants"),
    pytest.param({"tenant": "a", "variant": "b"}, {"tenant": "b", "variant": "a"}, id="swapped"),
    pytest.param({"tenant": "a b"}, {"tenant": "a", "variant": " b"}, id="moved"),
]


@pytest.mark.parametrize(("one_is", "two_is"), DIFFERENT)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["same worker", "another worker"])
def test_invariant_9_nothing_is_shared_between(
    worker: Worker, one_is: dict[str, Any], two_is: dict[str, Any], elsewhere: bool
) -> None:
    one = worker(**STEADY)
    two = worker(**STEADY) if elsewhere else one
    first, second = Model(takes_s=0.05, value="first's"), Model(takes_s=0.05, value="second's")
    # when they ask the same at once
    mine = ask(one, FlightKey("scoring", "s1", "x", **one_is), first, 3)
    theirs = ask(two, FlightKey("scoring", "s1", "x", **two_is), second, 3)
    assert (values(mine), values(theirs)) == (["first's"], ["second's"])
    # and one after the other, from memory and from Redis
    for flights in (one, two, worker()):
        for asked, value in ((one_is, "first's"), (two_is, "second's")):
            key = FlightKey("scoring", "s1", "x", **asked)
            assert flights.run(key, Model(value="nobody's")).value == value
    assert (first.calls, second.calls) == (1, 1)


def test_a_namespace_is_a_world_of_its_own(worker: Worker, namespace: str) -> None:
    one, two = worker(), worker(namespace=f"{namespace}-other")
    key = FlightKey("scoring", "x")
    assert one.run(key, Model(value=1)).value == 1
    assert two.run(key, Model(value=2)).value == 2


# one explicit key, two requests

MINE = FlightKey("scoring", "key chosen by the client", digest="of one request")
OTHER = FlightKey("scoring", "key chosen by the client", digest="of another")
NONE = FlightKey("scoring", "key chosen by the client")


@pytest.mark.parametrize("other", [OTHER, NONE], ids=["another digest", "no digest"])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["same worker", "another worker"])
def test_a_key_that_stands_for_another_request_is_refused(
    worker: Worker, other: FlightKey, elsewhere: bool
) -> None:
    one = worker(**STEADY)
    two = worker(**STEADY) if elsewhere else one
    model, wrong = Model(held=True), Model()
    # given a flight in the air
    owner = Caller(one, MINE, model)
    model.began.wait()
    # then another request under its key is refused, the same one joins
    assert isinstance(Caller(two, other, wrong).error(), KeyConflict)
    follower = Caller(two, MINE, model)
    if elsewhere:
        await_following(two)
    model.let_go()
    assert values([owner, follower]) == [{"call": 1}]
    # and so it is when the answer is remembered, in the worker and in Redis
    for flights in (one, two, worker()):
        assert isinstance(Caller(flights, other, wrong).error(), KeyConflict)
        assert isinstance(Caller(flights, other, wrong, replay=False).error(), KeyConflict)
        assert flights.run(MINE, model).value == {"call": 1}
    assert (model.calls, wrong.calls) == (1, 0)


def test_a_key_is_free_for_another_request_when_its_answer_is_forgotten(worker: Worker) -> None:
    brief = {"stages": {"default": {"result_ttl_s": 0.1, "failure_ttl_s": 0.1}}}
    one = worker(**brief)
    one.run(MINE, Model())
    assert isinstance(Caller(one, OTHER, Model()).error(), KeyConflict)

    def is_free() -> bool:
        try:
            return bool(one.run(OTHER, Model()).value == {"call": 1})
        except KeyConflict:
            return False

    wait_until(is_free, 3)
