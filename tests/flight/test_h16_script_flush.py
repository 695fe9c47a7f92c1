"""H16: Redis may forget its scripts between any two steps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flightsvc.errors import CallFailed, Overloaded
from flightsvc.flight import FlightContext, FlightKey, SingleFlight
from flightsvc.store import Names
from tests.faults.proxy import Proxy
from tests.flight.conftest import Worker
from tests.flight.flying import STEADY, Caller, Model, ask, count, values
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "s1", "an answer")


class ForgetfulProxy(Proxy):
    """Before each script that is called, the server forgets all of them."""

    def __init__(self, server: RedisServer) -> None:
        super().__init__(server)
        self._admin = server.client()
        self.flushes = 0

    def take(self, request: bytes) -> None:
        if b"EVALSHA" in request:
            self._admin.script_flush()
            self.flushes += 1


def healthy(flights: SingleFlight) -> bool:
    """Whether no step failed, and none went on without Redis."""
    return flights.coordination == "ok" and not any(
        value
        for name, value in flights.metrics.snapshot().items()
        if name.startswith(("redis.errors.", "flight.fallbacks."))
    )


@pytest.fixture
def wire(own_redis: RedisServer) -> Iterator[ForgetfulProxy]:
    with ForgetfulProxy(own_redis) as wire:
        yield wire


def test_h16_no_step_of_a_flight_needs_what_an_earlier_one_loaded(
    worker: Worker, wire: ForgetfulProxy
) -> None:
    one, two = (worker(url=wire.url, **STEADY) for _ in range(2))
    # acquire, mark_running, join, wake, beat, finish, fetch
    model = Model(held=True)
    callers = ask(one, KEY, model)
    model.began.wait()
    callers += ask(two, KEY, model, 3)
    wait_until(lambda: count(one, "redis.time.beat") >= 3)
    model.let_go()
    assert values(callers) == [{"call": 1}]
    # replay, inspect
    assert worker(url=wire.url).run(KEY, model).role == "replay"
    assert one.inspect(KEY.flight_id) is not None
    assert model.calls == 1
    assert wire.flushes >= 10
    assert healthy(one)
    assert healthy(two)


def test_h16_nor_do_failures_releases_and_repairs(
    worker: Worker, wire: ForgetfulProxy, own_redis: RedisServer, namespace: str
) -> None:
    one, two = (worker(url=wire.url, **STEADY) for _ in range(2))

    def full(ctx: FlightContext) -> None:
        raise Overloaded()

    assert isinstance(Caller(one, KEY, Model(error=ValueError())).error(), CallFailed)
    assert isinstance(Caller(one, KEY, full, queued=True).error(), Overloaded)
    assert two.run(KEY, Model(value="one")).value == "one"
    own_redis.client().set(Names(namespace, 16).flight(KEY.flight_id)["result"], b"junk")
    assert one.run(KEY, Model(value="two")).value == "two"
    assert healthy(one)
    assert healthy(two)
