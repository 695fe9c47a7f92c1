"""What is in the air in all workers, for people who look."""

from __future__ import annotations

import functools

import gevent
import pytest

from flightsvc.flight import FlightContext, FlightKey, SingleFlight
from flightsvc.flight.coordinator import FlightCoordinator
from flightsvc.flight.state import FlightState
from flightsvc.settings import Settings
from tests.flight.conftest import Worker
from tests.flight.flying import STEADY, Model, ask, await_following, values
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

#: the owner is silent for a while, and not taken over
QUIET = {"heartbeat_ms": 60_000, "takeover_detect_ms": 600_000}


def key(name: str, tenant: str = "") -> FlightKey:
    return FlightKey("scoring", name, tenant=tenant)


def test_flights_of_all_workers_are_seen_from_each(worker: Worker) -> None:
    one, two, three = (worker(**STEADY) for _ in range(3))
    model = Model(held=True)
    assert one.live().flights == ()
    first = ask(one, key("a", tenant="acme"), model, callers=3)
    wait_until(lambda: model.calls == 1)
    second = ask(two, key("b"), model)
    followers = ask(two, key("a", tenant="acme"), model, callers=2)
    await_following(two)
    wait_until(lambda: model.calls == 2)

    seen = {each.worker: each.live() for each in (one, two, three)}

    for worker_id, live in seen.items():
        assert (live.total, live.whole) == (2, True)
        a, b = live.flights  # the oldest first
        assert (a.flight_id, b.flight_id) == (key("a", "acme").flight_id, key("b").flight_id)
        assert (a.stage, a.tenant, a.state) == ("scoring", "acme", FlightState.RUNNING)
        assert (a.worker, a.followers, b.worker, b.followers) == (one.worker, 1, two.worker, 0)
        expected = {one.worker: (3, 0), two.worker: (2, 1), three.worker: (0, 0)}[worker_id]
        assert (a.waiters, b.waiters) == expected
        assert a.age_ms >= b.age_ms >= 0
        assert a.fence == model.fences[0]
        assert a.silent_ms is not None
    newest = three.live(newest=True).flights
    assert [each.tenant for each in newest] == ["", "acme"]
    model.let_go()
    values([*first, *followers, *second])
    assert three.live().total == 0
    assert three.live().flights == ()


def test_more_than_are_wanted_are_counted(worker: Worker) -> None:
    one, two = (worker(**STEADY) for _ in range(2))
    model = Model(held=True)
    callers = [ask(one, key(str(number)), model)[0] for number in range(40)]
    wait_until(lambda: model.calls == 40)

    live, newest = two.live(10), two.live(10, newest=True)

    assert (live.total, len(live.flights)) == (40, 10)
    assert live.flights[0].age_ms >= live.flights[-1].age_ms
    assert newest.flights[0].age_ms <= newest.flights[-1].age_ms
    ids = {each.flight_id for each in live.flights}
    assert not ids & {each.flight_id for each in newest.flights}
    model.let_go()
    values(callers)


def test_of_a_full_shard_the_most_silent_are_looked_at(
    redis_server: RedisServer, worker: Worker, namespace: str
) -> None:
    flights = worker(**QUIET, flight_shards=1)
    model = Model(held=True)
    callers = []
    for number in range(5):
        callers += ask(flights, key(str(number)), model)
        wait_until(functools.partial(called, model, number + 1))
        gevent.sleep(0.003)  # another millisecond
    coordinator = coordinator_of(flights)

    count, rows = coordinator.live(0, 2)

    assert (count, [flight_id for flight_id, _ in rows]) == (
        5, [key("0").flight_id, key("1").flight_id]
    )  # fmt: skip
    model.let_go()
    values(callers)


def test_a_silent_owner_is_seen_with_its_silence(worker: Worker) -> None:
    one, two = (worker(**QUIET) for _ in range(2))
    model = Model(held=True)
    callers = ask(one, key("a"), model)
    wait_until(lambda: model.calls == 1)
    gevent.sleep(0.3)

    (seen,) = two.live().flights

    assert seen.silent_ms is not None
    assert seen.silent_ms >= 300
    model.let_go()
    values(callers)


def test_a_flight_without_redis_is_seen_by_its_own_worker_alone() -> None:
    flights = SingleFlight(Settings(mode="local", simulated_latency_ms=0))
    model = Model(held=True)
    callers = ask(flights, key("a", tenant="acme"), model, callers=4)
    assert model.began.wait(5)

    live = flights.live()

    (seen,) = live.flights
    assert (live.total, live.whole) == (1, True)
    assert (seen.worker, seen.waiters, seen.followers) == (flights.worker, 4, 0)
    assert (seen.fence, seen.silent_ms, seen.tenant) == (0, None, "acme")
    model.let_go()
    values(callers)
    assert flights.live().flights == ()
    flights.close()


def test_while_redis_is_gone_the_own_flights_are_seen(
    own_redis: RedisServer, worker: Worker
) -> None:
    one, two = (worker(own_redis.url, **STEADY) for _ in range(2))
    model = Model(held=True)
    callers = ask(two, key("elsewhere"), model)
    wait_until(lambda: one.live().total == 1)
    own_redis.freeze()
    try:
        callers += ask(one, key("alone"), model)
        wait_until(lambda: model.calls == 2)
        live = one.live()
        assert not live.whole
        assert [each.flight_id for each in live.flights] == [key("alone").flight_id]
        assert live.total == 1
    finally:
        own_redis.thaw()
    wait_until(lambda: one.live().total == 2 and one.live().whole)
    model.let_go()
    values(callers)


@pytest.mark.parametrize("queued", [True, False])
def test_a_flight_that_waits_for_a_place_is_pending(worker: Worker, queued: bool) -> None:
    flights, model = worker(**STEADY), Model(held=True)

    def call(ctx: FlightContext) -> object:
        return model(ctx)

    callers = ask(flights, key("a"), call, queued=queued)
    assert model.began.wait(5)
    expected = FlightState.PENDING if queued else FlightState.RUNNING
    wait_until(lambda: [each.state for each in flights.live().flights] == [expected])
    model.let_go()
    values(callers)


def called(model: Model, times: int) -> bool:
    return model.calls == times


def coordinator_of(flights: SingleFlight) -> FlightCoordinator:
    assert flights._distributed is not None
    return flights._distributed.coordinator
