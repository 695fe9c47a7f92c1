"""H12: only the owner, by token and fence, may change a flight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from flightsvc.flight import FlightKey
from flightsvc.flight.coordinator import Ask, FlightCoordinator, Ownership
from flightsvc.flight.serializer import Payload, ResultSerializer
from flightsvc.flight.state import Ack, Failure
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.store import Names, open_store
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "s1", "an answer")
ENVELOPE = ResultSerializer(1_000).pack(Payload("json", b'"wrong"'))
Write = Callable[[FlightCoordinator, Ownership], Ack]

WRITES: dict[str, Write] = {
    "mark_running": lambda flights, own: flights.mark_running(own),
    "beat": lambda flights, own: flights.beat(int(KEY.flight_id, 16) % 16, [own])[0][0],
    "append": lambda flights, own: flights.append(own, 0, [b"wrong"])[0],
    "finish": lambda flights, own: flights.finish(own, ENVELOPE),
    "fail": lambda flights, own: flights.fail(own, Failure.of(ValueError())),
    "release": lambda flights, own: flights.release(own),
    "abandon": lambda flights, own: flights.abandon(own),
}


@pytest.fixture
def coordinator(redis_server: RedisServer, namespace: str) -> Iterator[FlightCoordinator]:
    store = open_store(Settings(redis_url=redis_server.url, redis_timeout_ms=1000), Metrics.off())
    yield FlightCoordinator(store, Names(namespace, 16), Settings(), "a-worker")
    store.close()


@pytest.fixture
def names(namespace: str) -> dict[str, str]:
    return Names(namespace, 16).flight(KEY.flight_id)


@pytest.fixture
def own(coordinator: FlightCoordinator) -> Ownership:
    """A flight in the air."""
    granted = coordinator.acquire_or_join(Ask(KEY, "the owner's token"))
    assert isinstance(granted, Ownership)
    return granted


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("wrong", ["token", "fence", "older fence"])
def test_h12_who_is_not_the_owner_is_refused_and_changes_nothing(
    redis_server: RedisServer,
    coordinator: FlightCoordinator,
    names: dict[str, str],
    own: Ownership,
    write: Write,
    wrong: str,
) -> None:
    client = redis_server.client()
    client.pexpire(names["meta"], 5_000)
    before = client.hgetall(names["meta"]), client.xrange(names["events"])
    changed = {
        "token": replace(own, token="another"),
        "fence": replace(own, fence=own.fence + 1),
        "older fence": replace(own, fence=own.fence - 1),
    }[wrong]
    assert write(coordinator, changed) is Ack.STALE
    assert (client.hgetall(names["meta"]), client.xrange(names["events"])) == before
    assert client.pttl(names["meta"]) <= 5_000
    assert client.exists(names["result"]) == 0


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_h12_a_flight_that_is_gone_is_lost_and_not_made_anew(
    redis_server: RedisServer,
    coordinator: FlightCoordinator,
    names: dict[str, str],
    own: Ownership,
    write: Write,
) -> None:
    client = redis_server.client()
    client.delete(names["meta"], names["events"])
    assert write(coordinator, own) is Ack.LOST
    assert client.exists(names["meta"], names["events"], names["result"]) == 0


def test_a_finish_that_is_told_twice_is_one_finish_and_another_end_is_refused(
    redis_server: RedisServer,
    coordinator: FlightCoordinator,
    names: dict[str, str],
    own: Ownership,
) -> None:
    assert coordinator.finish(own, ENVELOPE) is Ack.OK
    assert coordinator.finish(own, ENVELOPE) is Ack.OK
    other = ResultSerializer(1_000).pack(Payload("json", b'"other"'))
    assert coordinator.finish(own, other) is Ack.CONFLICT
    assert coordinator.fail(own, Failure.of(ValueError())) is Ack.CONFLICT
    client: Any = redis_server.client()
    ends = client.xrange(names["events"])
    assert [fields[b"kind"] for _, fields in ends] == [b"owned", b"succeeded"]
    assert client.get(names["result"]) == ENVELOPE.blob


def test_invariant_1_fences_rise_also_where_redis_lost_its_data(
    redis_server: RedisServer, coordinator: FlightCoordinator, names: dict[str, str]
) -> None:
    seen = []
    for n in range(20):
        granted = coordinator.acquire_or_join(Ask(KEY, f"token {n}"))
        assert isinstance(granted, Ownership)
        seen.append(granted.fence)
        redis_server.client().delete(*names.values())
    assert seen == sorted(set(seen))
