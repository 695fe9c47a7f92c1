"""A worker's first moments: nothing that it does once may get in the way of its flights."""

from __future__ import annotations

import gevent
import pytest

from flightsvc.flight import FlightKey, SingleFlight
from tests.faults.proxy import Proxy
from tests.flight.conftest import Worker, counts
from tests.flight.flying import Caller, Model, roles, values
from tests.processes import wait_until
from tests.support.redis_server import RedisServer


def troubles(flights: SingleFlight) -> dict[str, float]:
    """Everything that went wrong with Redis so far."""
    bad = ("redis.errors.", "flight.fallbacks.", "metrics.misused")
    return {name: value for name, value in counts(flights).items() if name.startswith(bad)}


def test_many_questions_at_once_are_no_trouble_for_a_worker_that_never_asked_before(
    worker: Worker, redis_server: RedisServer
) -> None:
    one = worker()
    callers = [Caller(one, FlightKey("scoring", n), Model()) for n in range(300)]
    assert values(callers) == [{"call": 1}]
    assert roles(callers) == ["owner"] * 300
    assert troubles(one) == {}


@pytest.mark.one_server
def test_a_slow_first_look_at_the_server_takes_no_connection_from_flights(
    worker: Worker, redis_server: RedisServer
) -> None:
    with Proxy(redis_server) as wire:
        look = wire.hold(b"INFO")
        one = worker(url=wire.url)
        first = Caller(one, FlightKey("scoring", "first"), Model())
        assert look.met.wait(5)
        callers = [Caller(one, FlightKey("scoring", n), Model()) for n in range(50)]
        assert values([first, *callers]) == [{"call": 1}]
        assert roles(callers) == ["owner"] * 50
        look.let_go()
        assert troubles(one) == {}


@pytest.mark.one_server
def test_a_worker_that_closes_in_its_first_moment_says_nothing(
    worker: Worker, redis_server: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with Proxy(redis_server) as wire:
        look = wire.hold(b"INFO")
        one = worker(url=wire.url)
        one.run(FlightKey("scoring", "first"), Model())
        assert look.met.wait(5)
        one.close()
        look.let_go()
        gevent.sleep(0.05)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.one_server
def test_a_worker_that_was_never_used_has_no_connection_and_closes(
    worker: Worker, redis_server: RedisServer, namespace: str
) -> None:
    one = worker(url=f"{redis_server.url}?client_name={namespace}")
    assert namespace not in [client["name"] for client in redis_server.client().client_list()]
    one.close()


def test_a_server_that_may_evict_flights_is_warned_of_once(
    worker: Worker, own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    own_redis.client().config_set("maxmemory-policy", "allkeys-lru")
    one = worker(url=own_redis.url)
    for n in range(3):
        one.run(FlightKey("scoring", n), Model())
    wait_until(lambda: "allkeys-lru" in caplog.text, 3)
    assert caplog.text.count("allkeys-lru") == 1
