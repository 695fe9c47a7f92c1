"""Acquires whose reply was lost: the flight may have been granted, and nobody knows.

The local flight went on without Redis. When Redis is back the heartbeat greenlet asks again
with the same token: a call that still runs goes on under the ownership, a finished one is
stored, a failed one is given back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from flightsvc.flight.call import Adopted
from flightsvc.flight.coordinator import Ask, FlightCoordinator, Ownership
from flightsvc.flight.health import ServerHealth
from flightsvc.flight.local import LocalFlight
from flightsvc.flight.serializer import ResultSerializer
from flightsvc.flight.state import Landed
from flightsvc.store import StoreError

log = logging.getLogger(__name__)


class OrphanedAcquires:
    """What is still to be settled with Redis.

    :param health_of: the health of the server that has a flight, None where all are asked.
    """

    def __init__(
        self,
        coordinator: FlightCoordinator,
        serializer: ResultSerializer,
        health_of: Callable[[str], ServerHealth | None] = lambda _flight_id: None,
    ) -> None:
        self._coordinator = coordinator
        self._serializer = serializer
        self._health_of = health_of
        self._open: list[tuple[LocalFlight, Ask]] = []

    def __len__(self) -> int:
        return len(self._open)

    def add(self, flight: LocalFlight, ask: Ask) -> None:
        """Remember an acquire that may have been granted."""
        self._open.append((flight, ask))

    def beat(self) -> None:
        """Ask again for each; what fails stays for the next time.

        One time-out a server is all that a beat waits for: the leases are renewed between beats.
        """
        waiting, self._open = self._open, []
        silent: set[ServerHealth | None] = set()
        for flight, ask in waiting:
            health = self._health_of(ask.key.flight_id)
            if health in silent or (health is not None and not health.up):
                self._open.append((flight, ask))
                continue
            try:
                self._settle(flight, ask)
            except StoreError as error:
                self._open.append((flight, ask))
                if error.unreachable:
                    silent.add(health)

    def _settle(self, flight: LocalFlight, ask: Ask) -> None:
        if flight.adopted:
            return
        # an end that is stored meanwhile is welcome: then there is nothing left to settle
        outcome = self._coordinator.acquire_or_join(replace(ask, replay=True))
        if not isinstance(outcome, Ownership):
            return
        if flight.run is not None:
            flight.run.tell(Adopted(outcome))
            self._open.append((flight, ask))  # until it has: it may be ending just now
        elif isinstance(flight.end, Landed) and flight.end.fallback is None:
            self._coordinator.finish(outcome, self._serializer.pack(flight.end.payload))
        else:
            self._coordinator.release(outcome)
