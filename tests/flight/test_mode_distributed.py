"""Mode ``distributed``: without Redis there is an error, never a call that others may repeat."""

from __future__ import annotations

from flightsvc.errors import CoordinationUnavailable
from flightsvc.flight import FlightKey
from tests.flight.conftest import Worker
from tests.flight.flying import QUICK, STEADY, Caller, Model, ask, await_following, count
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "s1", "an answer")


def test_in_mode_distributed_a_new_caller_is_told_at_once(
    worker: Worker, own_redis: RedisServer
) -> None:
    one = worker(url=own_redis.url, mode="distributed", **STEADY)
    own_redis.freeze()
    model = Model()
    for _ in range(3):
        caller = Caller(one, KEY, model)
        error = caller.error(1.5)
        assert isinstance(error, CoordinationUnavailable)
        assert (error.status, error.retry_after_s) == (503, 1)
    assert count(one, "redis.time.acquire") == 1
    assert model.calls == 0
    # and when Redis is back, coordination is
    own_redis.thaw()
    wait_until(lambda: one.coordination == "ok", 5)
    late = Caller(one, KEY, model)
    assert late.result().value == {"call": 1}
    assert late.took_s < 3


def test_in_mode_distributed_an_owner_that_cannot_beat_stops(
    worker: Worker, own_redis: RedisServer
) -> None:
    one = worker(url=own_redis.url, mode="distributed", **QUICK)
    two = worker(url=own_redis.url, mode="distributed", **QUICK)
    model = Model(held=True)
    callers = ask(one, KEY, model, 3)
    model.began.wait()
    callers += ask(two, KEY, model, 3)
    await_following(two)
    own_redis.freeze()
    for caller in callers:
        assert isinstance(caller.error(), CoordinationUnavailable)
        assert caller.took_s > QUICK["takeover_detect_ms"] / 1000
    model.let_go()
    assert (model.calls, model.ended) == (1, 0)


def test_in_mode_distributed_there_is_no_call_without_redis(
    worker: Worker, own_redis: RedisServer
) -> None:
    own_redis.kill()
    one = worker(url=own_redis.url, mode="distributed", **STEADY)
    model = Model()
    caller = Caller(one, KEY, model)
    assert isinstance(caller.error(1), CoordinationUnavailable)
    assert model.calls == 0
    own_redis.start()
    wait_until(lambda: one.coordination == "ok", 5)
    assert one.run(KEY, model).role == "owner"
