"""A flight has ended for its callers, but Redis cannot be told yet: what new callers get."""

from __future__ import annotations

from collections.abc import Callable

import gevent
import pytest

from flightsvc.errors import CallFailed
from flightsvc.flight import FlightKey, SingleFlight
from tests.flight.conftest import Worker
from tests.flight.flying import Caller, Model, count
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "s1", "an answer")
Untold = Callable[[Model], SingleFlight]


@pytest.fixture
def untold(worker: Worker, own_redis: RedisServer) -> Untold:
    """Makes a worker whose flight of this model ended when Redis was gone already."""

    def make(model: Model) -> SingleFlight:
        one = worker(url=own_redis.url, heartbeat_ms=100, takeover_detect_ms=6_000)
        owner = Caller(one, KEY, model)
        model.began.wait()
        own_redis.kill()
        model.let_go()
        if model.error is None:
            owner.result(2)
        else:
            owner.error(2)
        assert count(one, "flight.in_flight") == 1
        return one

    return make


def test_an_answer_that_is_not_stored_yet_is_an_answer(untold: Untold) -> None:
    one = untold(model := Model(held=True))
    assert Caller(one, KEY, model).result(1).value == {"call": 1}
    assert model.calls == 1


def test_who_refuses_replays_is_not_given_an_answer_from_before_it_asked(untold: Untold) -> None:
    one = untold(model := Model(held=True))
    assert Caller(one, KEY, model, replay=False).result(2).value == {"call": 2}


def test_a_failure_that_is_not_stored_yet_does_not_keep_the_key(untold: Untold) -> None:
    one = untold(Model(held=True, error=ValueError()))
    # when the model works again, the next caller has its answer, with or without Redis
    model = Model()
    assert Caller(one, KEY, model).result(2).value == {"call": 1}
    assert model.calls == 1


def test_closing_ends_the_telling_of_a_flight_that_another_one_followed(untold: Untold) -> None:
    one = untold(Model(held=True, error=ValueError()))
    one.run(KEY, Model())
    with gevent.Timeout(4):
        one.close()
    before = count(one, "redis.time.fail")
    gevent.sleep(0.8)
    assert count(one, "redis.time.fail") == before


def test_a_failure_that_a_call_now_would_repeat_is_still_one(
    worker: Worker, own_redis: RedisServer
) -> None:
    # who waited for the failed call is told, and never repeats it
    one = worker(url=own_redis.url, heartbeat_ms=100, takeover_detect_ms=6_000)
    model = Model(held=True, error=ValueError())
    callers = [Caller(one, KEY, model) for _ in range(5)]
    model.began.wait()
    own_redis.kill()
    model.let_go()
    for caller in callers:
        assert isinstance(caller.error(2), CallFailed)
    assert model.calls == 1
