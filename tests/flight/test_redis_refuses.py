"""Redis is there but refuses: full, or turned into a replica."""

from __future__ import annotations

from typing import Any

import pytest

from flightsvc.errors import CallFailed
from flightsvc.flight import FlightKey
from tests.flight.conftest import Worker
from tests.flight.flying import Caller, Model, ask, await_following, count, roles, values
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

LEASE_S = 1.2
LEASE = {"heartbeat_ms": 100, "takeover_detect_ms": int(LEASE_S * 1000)}
KEY = FlightKey("scoring", "s1", "an answer")
NEW = FlightKey("scoring", "a new question")


def fill(server: RedisServer) -> None:
    """Let the server have no memory left."""
    server.client().config_set("maxmemory-policy", "noeviction")
    server.client().config_set("maxmemory", "1mb")


def empty(server: RedisServer) -> None:
    server.client().config_set("maxmemory", "0")


def test_a_full_redis_keeps_the_owner_and_its_followers_are_told(
    worker: Worker, own_redis: RedisServer
) -> None:
    one, two = worker(url=own_redis.url, **LEASE), worker(url=own_redis.url, **LEASE)
    model = Model(held=True)
    mine = ask(one, KEY, model, 3)
    model.began.wait()
    theirs = ask(two, KEY, model, 3)
    await_following(two)
    fill(own_redis)
    # the heartbeat needs no memory: for longer than a lease nobody takes over
    before = count(one, "redis.time.beat")
    wait_until(lambda: count(one, "redis.time.beat") >= before + 13)
    assert model.calls == 1
    model.let_go()
    # the owner's callers have the answer at once
    assert values(mine) == [{"call": 1}]
    assert max(caller.answered_at for caller in mine) - model.ended_at < 1
    # and the others are told that it could not be stored, soon
    for caller in theirs:
        error = caller.error()
        assert isinstance(error, CallFailed)
        assert (error.code, error.retryable, error.status) == ("RESULT_NOT_STORED", True, 503)
        assert caller.answered_at - model.ended_at < LEASE_S + 2
    assert model.calls == 1
    wait_until(lambda: count(one, "flight.ends.scoring.not_stored") == 1)


def test_a_full_redis_stops_no_new_caller_and_is_no_matter_when_it_has_room_again(
    worker: Worker, own_redis: RedisServer
) -> None:
    one = worker(url=own_redis.url, **LEASE)
    fill(own_redis)
    first = Caller(one, NEW, Model())
    assert first.result().role == "local"
    assert first.took_s < 1
    assert one.coordination == "degraded"
    empty(own_redis)
    wait_until(lambda: one.coordination == "ok", 5)
    assert one.run(KEY, Model()).role == "owner"


def test_a_failure_is_told_to_followers_though_redis_is_full(
    worker: Worker, own_redis: RedisServer
) -> None:
    one, two = worker(url=own_redis.url, **LEASE), worker(url=own_redis.url, **LEASE)
    model = Model(held=True, error=ValueError())
    callers = ask(one, KEY, model)
    model.began.wait()
    callers += ask(two, KEY, model)
    await_following(two)
    fill(own_redis)
    model.let_go()
    for caller in callers:
        error = caller.error(1)
        assert isinstance(error, CallFailed)
        assert error.code == "UNEXPECTED"


@pytest.fixture
def admin(own_redis: RedisServer) -> Any:
    return own_redis.client()


def test_h17_a_master_that_turned_read_only_stops_no_caller(
    worker: Worker, own_redis: RedisServer, admin: Any
) -> None:
    one = worker(url=own_redis.url, **LEASE)
    model = Model(held=True)
    flying = ask(one, KEY, model, 3)
    model.began.wait()
    admin.replicaof("127.0.0.1", "1")
    new = ask(one, NEW, Model(), 3)
    assert values(new) == [{"call": 1}]
    assert roles(new) == ["local"] * 3
    assert max(caller.took_s for caller in new) < 1
    model.let_go()
    assert values(flying) == [{"call": 1}]
    assert max(caller.answered_at for caller in flying) - model.ended_at < 1
    assert one.coordination == "degraded"
    # and when it is master again, everything is as before
    admin.replicaof("no", "one")
    wait_until(lambda: one.coordination == "ok", 5)
    assert one.run(FlightKey("scoring", "later"), Model()).role == "owner"
