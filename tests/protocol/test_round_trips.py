"""What a flight costs Redis, whatever the number of its callers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import gevent
import pytest
from gevent.event import Event

from flightsvc.flight import End, FlightContext, FlightKey, FlightStream, SingleFlight
from flightsvc.flight.call import Signal
from flightsvc.flight.coordinator import Ask, Ownership
from flightsvc.flight.health import CoordinationHealth
from flightsvc.flight.heartbeat import HeartbeatManager
from flightsvc.flight.orphans import OrphanedAcquires
from flightsvc.flight.serializer import ResultSerializer
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.store.base import BLOCK_S
from tests.flight.conftest import Worker, counts
from tests.processes import wait_until
from tests.protocol.desk import SHARDS, Desk
from tests.protocol.watch import Watch
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.one_server
KEY = FlightKey("scoring", "s1", "3", "an answer")


@pytest.fixture
def watch(redis_server: RedisServer) -> Iterator[Watch]:
    with Watch(redis_server) as watch:
        yield watch


def _waiting(flights: SingleFlight, callers: int) -> bool:
    return counts(flights).get("flight.callers.scoring") == callers


def _fly(one: SingleFlight, two: SingleFlight | None, callers: int) -> list[str]:
    """One flight with this many callers in each worker.

    :returns: the roles of the answers.
    """
    began, go = Event(), Event()

    def call(ctx: FlightContext) -> str:
        began.set()
        go.wait()
        return "x"

    flying = [gevent.spawn(one.run, KEY, call) for _ in range(callers)]
    began.wait()
    if two is not None:
        flying += [gevent.spawn(two.run, KEY, call) for _ in range(callers)]
        wait_until(lambda: _waiting(two, callers))
        wait_until(lambda: (view := one.inspect(KEY.flight_id)) and view.followers == 1)
    wait_until(lambda: _waiting(one, callers))
    go.set()
    gevent.joinall(flying, raise_error=True)
    return [result.role for result in (one.value for one in flying) if result is not None]


@pytest.mark.parametrize("callers", [1, 200])
def test_an_owner_needs_three_script_calls(worker: Worker, watch: Watch, callers: int) -> None:
    roles = _fly(worker(), None, callers)

    assert Counter(roles)["owner"] == 1
    assert watch.scripts() == {"acquire": 1, "mark_running": 1, "finish": 1}


@pytest.mark.parametrize("callers", [1, 200])
def test_an_owner_that_streams_needs_one_more_a_batch(
    worker: Worker, watch: Watch, callers: int
) -> None:
    flights, read = worker(), Event()

    def call(ctx: FlightContext) -> str:
        for chunk in (b"a", b"b", b"c"):
            ctx.emit(chunk)
        read.wait()
        return "abc"

    def listen() -> None:
        with flights.stream(KEY, call) as stream:
            assert [stream.next() for _ in range(3)] == [(b"a",), (b"b",), (b"c",)]
            heard.append(stream)
            assert isinstance(stream.next(), End)

    heard: list[FlightStream] = []
    listening = [gevent.spawn(listen) for _ in range(callers)]
    wait_until(lambda: len(heard) == callers and counts(flights).get("redis.time.append") == 1)
    read.set()
    gevent.joinall(listening, raise_error=True)
    # one batch, and at the end the question whether all is there
    assert watch.scripts() == {"acquire": 1, "mark_running": 1, "append": 2, "finish": 1}


@pytest.mark.parametrize("callers", [1, 200])
def test_a_follower_needs_two_and_a_shared_read(worker: Worker, watch: Watch, callers: int) -> None:
    began = time.monotonic()
    roles = _fly(worker(), worker(), callers)
    looks = (time.monotonic() - began) / BLOCK_S

    # the owner's three, the follower's join and fetch
    assert roles.count("follower") == 2 * callers - 1
    commands = watch.commands()
    calls = Counter(command.name for command in commands)
    assert (calls["acquire"], calls["mark_running"], calls["finish"]) == (3, 1, 1)
    # one read, again only for an event or when nothing came for long, of one stream of the flight
    events = f":events:{KEY.flight_id}"
    reads = [str(command.words).count(events) for command in commands if command.name == "XREAD"]
    assert 1 <= len(reads) <= 3 + looks
    assert max(reads) == 1
    assert calls["XINFO"] <= 1 + looks
    # and nothing else, but for a worker's first look at the server, and heartbeats
    known = {"acquire", "mark_running", "finish", "XREAD", "XINFO", "INFO", "beat", "inspect"}
    assert calls.keys() <= known
    assert calls["INFO"] <= 2


def test_a_replay_needs_one_and_the_workers_own_none(worker: Worker, watch: Watch) -> None:
    one, two = worker(), worker()
    one.run(KEY, lambda ctx: "x")
    watch.commands()

    assert two.run(KEY, lambda ctx: "y").role == "replay"
    assert watch.scripts() == {"acquire": 1}
    assert two.run(KEY, lambda ctx: "y").role == "l1"
    assert one.run(KEY, lambda ctx: "y").role == "l1"
    assert [command for command in watch.commands() if command.name != "beat"] == []


def test_a_failure_needs_three(worker: Worker, watch: Watch) -> None:
    with pytest.raises(Exception, match="UNEXPECTED"):
        worker().run(KEY, lambda ctx: 1 / 0)

    assert watch.scripts() == {"acquire": 1, "mark_running": 1, "fail": 1}


def test_a_worker_keeps_few_connections(worker: Worker, redis_server: RedisServer) -> None:
    client = redis_server.client()
    before = client.info("clients")["connected_clients"]

    _fly(worker(), worker(), 200)

    assert client.info("clients")["connected_clients"] - before <= 2 * 6


def _manager(desk: Desk) -> HeartbeatManager:
    settings = Settings.checked(redis_url=desk.server.url, namespace=desk.namespace)
    metrics = Metrics.off()
    health = CoordinationHealth(desk.store, desk.names, lambda _shard: None, metrics)
    coordinator = desk.coordinator()
    orphans = OrphanedAcquires(coordinator, ResultSerializer(settings.max_result_bytes))
    return HeartbeatManager(coordinator, health, desk.names, settings, orphans)


def _owned(desk: Desk, number: int) -> list[Ownership]:
    coordinator, owned = desk.coordinator(), []
    for part in range(number):
        own = coordinator.acquire_or_join(Ask(FlightKey("scoring", part), f"t{part}"))
        assert isinstance(own, Ownership)
        owned.append(own)
    return owned


@pytest.mark.parametrize("flights", [1, 50])
def test_heartbeats_of_all_flights_need_one_call_a_shard(
    desk: Desk, watch: Watch, flights: int
) -> None:
    # given a worker that owns many flights
    manager, owned = _manager(desk), _owned(desk, flights)
    heard: list[Signal] = []
    with ExitStack() as stack:
        for own in owned:
            stack.enter_context(manager.keep(own, heard.append))
        watch.commands()

        # when all of them are beaten
        manager.beat_all()

        # then there is a call for each shard that has some, and every flight is in one of them
        beats = [command for command in watch.commands() if command.verb == "beat"]
        shards = {desk.names.shard_of(own.key.flight_id) for own in owned}
        assert len(beats) == len(shards) <= SHARDS
        words = Counter(word for command in beats for word in command.words)
        assert [words[own.key.flight_id] for own in owned] == [1] * flights
        assert heard == []
    manager.close()
