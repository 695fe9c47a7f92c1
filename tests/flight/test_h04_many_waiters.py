"""H04: waiters cost no connection, and do not hold up the heartbeat."""

from __future__ import annotations

import time

import pytest

from flightsvc.flight import FlightKey
from tests.flight.conftest import Worker
from tests.flight.flying import STEADY, Model, ask, await_following, count, roles, values
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "s1", "an answer")
NAMED = "?client_name="


def connections(server: RedisServer, name: str) -> int:
    """Open connections of one worker."""
    clients = server.client().client_list()
    return sum(1 for client in clients if client["name"] == name)


@pytest.mark.one_server
def test_h04_fifty_followers_and_their_owner_in_one_worker(
    worker: Worker, redis_server: RedisServer, namespace: str
) -> None:
    one = worker(url=f"{redis_server.url}{NAMED}{namespace}", **STEADY)
    model = Model(held=True)
    # given an owner and 50 followers in one worker, for several heartbeats
    callers = ask(one, KEY, model, 51)
    model.began.wait()
    view = one.inspect(KEY.flight_id)
    wait_until(lambda: count(one, "redis.time.beat") >= 8, 5)
    # then the heartbeat goes on
    later = one.inspect(KEY.flight_id)
    assert view is not None
    assert later is not None
    assert later.age_ms > 7 * STEADY["heartbeat_ms"]
    assert later.heartbeat_age_ms < later.age_ms / 2
    assert (later.state, later.fence) == ("RUNNING", view.fence)
    # and they hold few connections
    assert connections(redis_server, namespace) <= 6
    model.let_go()
    assert values(callers) == [{"call": 1}]
    assert roles(callers) == ["follower"] * 50 + ["owner"]
    assert count(one, "redis.time.acquire") == 1


@pytest.mark.one_server
def test_h04_followers_of_many_flights_share_one_reader(
    worker: Worker, redis_server: RedisServer, namespace: str
) -> None:
    one = worker(**STEADY)
    two = worker(url=f"{redis_server.url}{NAMED}{namespace}", **STEADY)
    model = Model(held=True)
    keys = [FlightKey("scoring", "many", n) for n in range(40)]
    owners = [ask(one, key, model, 2) for key in keys]
    wait_until(lambda: model.calls == 40)
    followers = [ask(two, key, model, 5) for key in keys]
    await_following(two, times=40)
    until = time.monotonic() + 0.3
    wait_until(lambda: connections(redis_server, namespace) > 6 or time.monotonic() > until)
    assert connections(redis_server, namespace) <= 6
    model.let_go()
    for mine, theirs in zip(owners, followers, strict=True):
        assert len(values(mine + theirs)) == 1
    assert model.calls == 40
    assert count(two, "flight.calls.scoring") == 0


def test_h04_the_commands_of_a_flight_do_not_depend_on_its_callers(
    worker: Worker, own_redis: RedisServer
) -> None:
    one = worker(url=own_redis.url)
    one.run(FlightKey("scoring", "warm"), Model())

    def commands_for(callers: int) -> int:
        before = own_redis.client().info("stats")["total_commands_processed"]
        values(ask(one, FlightKey("scoring", "with", callers), Model(takes_s=0.1), callers))
        return int(own_redis.client().info("stats")["total_commands_processed"]) - int(before)

    few, many = commands_for(2), commands_for(500)
    assert many <= few + 3  # a heartbeat may fall into one of them
