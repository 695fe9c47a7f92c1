"""An acquire without a reply may still be carried out: nobody may own a flight unawares."""

from __future__ import annotations

import gevent
import pytest

from flightsvc.flight import FlightContext, FlightKey, SingleFlight
from flightsvc.flight.coordinator import Ask, FlightCoordinator
from flightsvc.flight.state import FlightState
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.store import Names, open_store
from tests.flight.conftest import Worker
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "k")
QUICK = {"takeover_detect_ms": 600, "heartbeat_ms": 100, "redis_timeout_ms": 100}


def _dead_owner(server: RedisServer, namespace: str) -> None:
    """A worker that owns the flight, and never beats."""
    settings = Settings.checked(redis_url=server.url, namespace=namespace, **QUICK)
    store = open_store(settings, Metrics.off())
    names = Names(namespace, settings.flight_shards)
    FlightCoordinator(store, names, settings, "dead").acquire_or_join(Ask(KEY, "dead"))
    store.close()


@pytest.fixture
def frozen(
    own_redis: RedisServer, namespace: str, worker: Worker
) -> tuple[SingleFlight, list[int]]:
    """A follower of a dead owner, whose takeover was sent to a frozen server.

    :returns: the worker, and the fences of the calls that it made.
    """
    _dead_owner(own_redis, namespace)
    two, calls = worker(own_redis.url, **QUICK), []

    def call(ctx: FlightContext) -> str:
        calls.append(ctx.fence)
        return "x"

    waiting = gevent.spawn(two.run, KEY, call)
    client = own_redis.client()
    interest = Names(namespace, 16).flight(KEY.flight_id)["interest"]
    wait_until(lambda: client.exists(interest))
    own_redis.freeze()
    try:
        # it asks, waits, asks again, loses patience and answers alone
        waiting.join(timeout=10)
    finally:
        own_redis.thaw()
    assert waiting.value is not None
    assert (waiting.value.value, waiting.value.role) == ("x", "local")
    return two, calls


def test_a_takeover_that_was_carried_out_late_is_settled(
    frozen: tuple[SingleFlight, list[int]], own_redis: RedisServer, worker: Worker
) -> None:
    # given a server that carries out, late, a takeover whose asker has answered alone
    two, calls = frozen

    # when the asker hears of it, then its answer is stored, and nobody else makes the call
    wait_until(
        lambda: (view := two.inspect(KEY.flight_id)) and view.state is FlightState.SUCCEEDED,
        within_s=5,
    )
    result = worker(own_redis.url, **QUICK).run(KEY, lambda ctx: "another call")
    assert (result.value, result.role) == ("x", "replay")
    assert len(calls) == 1
