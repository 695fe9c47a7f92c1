"""What is in the air now, in all workers: for people who look, not for flights."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flightsvc.flight.local import LocalFlight, LocalSingleFlight
from flightsvc.flight.state import FlightState
from flightsvc.store import StoreError

if TYPE_CHECKING:
    from flightsvc.flight.distributed import DistributedFlights

#: flights that are looked at in all, if there are more: from them the shown ones are chosen
MOST_LOOKED_AT = 1_024


@dataclass(frozen=True, slots=True)
class LiveFlight:
    """A flight in the air. Ages are by Redis's clock, in ms.

    :param worker: who owns it.
    :param waiters: callers that wait for it in this worker.
    :param followers: other workers in which callers wait for it.
    :param age_ms: of this ownership.
    :param silent_ms: since its owner last said that it lives; None: it flies without Redis.
    """

    flight_id: str
    stage: str
    tenant: str
    state: FlightState
    worker: str
    fence: int
    ownerships: int
    waiters: int
    followers: int
    age_ms: int
    silent_ms: int | None


@dataclass(frozen=True, slots=True)
class LiveFlights:
    """Some of the flights in the air, and how many there are.

    :param whole: whether every worker's were asked about; else Redis, or a part of it, did not
        answer.
    """

    flights: tuple[LiveFlight, ...]
    total: int
    whole: bool


def look(
    local: LocalSingleFlight,
    distributed: DistributedFlights | None,
    worker: str,
    limit: int,
    *,
    newest: bool,
) -> LiveFlights:
    """The flights in the air: from Redis, and those of this worker that Redis does not know.

    Asks twice a shard at most, one shard after the other, and nothing of a server that does not
    answer. Never raises for that.

    :param limit: flights that are returned at most.
    :param newest: the youngest first; else the oldest.
    """
    here = {flight.key.flight_id: flight for flight in local.flights() if flight.end is None}
    found, total, whole = _in_redis(distributed, here)
    known = {flight.flight_id for flight in found}
    for flight_id, flight in here.items():
        if flight_id not in known and _flies_alone(flight):
            found.append(_alone(flight, worker))
            total += 1
    found.sort(key=lambda flight: flight.age_ms, reverse=not newest)
    return LiveFlights(tuple(found[:limit]), total, whole)


def _in_redis(
    distributed: DistributedFlights | None, here: dict[str, LocalFlight]
) -> tuple[list[LiveFlight], int, bool]:
    found: list[LiveFlight] = []
    total, silent = 0, set[str]()
    if distributed is None:
        return found, total, True
    for shard in range(distributed.shards):
        server = distributed.health.of(shard)
        if not server.up or server.name in silent:
            silent.add(server.name)
            continue
        try:
            count, rows = distributed.coordinator.live(shard, MOST_LOOKED_AT // distributed.shards)
        except StoreError:  # whoever acquires finds out by himself whether Redis is there
            silent.add(server.name)
            continue
        total += count
        found += _shown(rows, here)
    return found, total, not silent


def _shown(
    rows: list[tuple[str, list[bytes | int]]], here: dict[str, LocalFlight]
) -> Iterator[LiveFlight]:
    for flight_id, row in rows:
        if not row:  # it has ended between the two questions
            continue
        state, stage, tenant, worker, fence, ownerships, age_ms, silent_ms, followers = (
            each.decode() if isinstance(each, bytes) else each for each in row
        )
        mine = here.get(flight_id)
        yield LiveFlight(
            flight_id,
            str(stage),
            str(tenant),
            FlightState(state),
            str(worker),
            int(fence),
            int(ownerships),
            mine.waiting if mine else 0,
            int(followers),
            max(0, int(age_ms)),
            max(0, int(silent_ms)),
        )


def _flies_alone(flight: LocalFlight) -> bool:
    return flight.run is not None and flight.run.own is None


def _alone(flight: LocalFlight, worker: str) -> LiveFlight:
    assert flight.run is not None
    state = FlightState.RUNNING if flight.run.running else FlightState.PENDING
    age_ms = int(1000 * (time.monotonic() - flight.run.began_at))
    key = flight.key
    return LiveFlight(
        key.flight_id, key.stage, key.tenant, state, worker, 0, 1, flight.waiting, 0, age_ms, None
    )
