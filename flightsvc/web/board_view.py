"""One look at everything that the status page shows."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import cast

from flightsvc._version import __version__
from flightsvc.errors import CircuitOpen
from flightsvc.flight.live import MOST_LOOKED_AT, LiveFlight, LiveFlights
from flightsvc.guard.breaker import TargetBreaker
from flightsvc.metrics import FLIGHT_WAITERS, FLIGHTS_IN_FLIGHT
from flightsvc.store.modules import moment
from flightsvc.store.savings import Saved
from flightsvc.web.board_shapes import (
    BoardShown,
    BreakerShown,
    BreakerState,
    Coordination,
    LiveFlightShown,
    LiveShown,
    SavingsShown,
    WorkerShown,
)
from flightsvc.web.extension import Extension
from flightsvc.web.openapi_shapes import ModuleShown

#: flights that are shown at most
MOST_SHOWN = 200


def shown(board: BoardShown, *, newest: bool) -> BoardShown:
    """The same with the flights that are shown.

    :param newest: the youngest flight first; else the oldest.
    """
    flights = board.live.flights[::-1] if newest else board.live.flights
    live = board.live.model_copy(update={"flights": flights[:MOST_SHOWN]})
    return board.model_copy(update={"live": live})


def gather(service: Extension) -> BoardShown:
    """Look now, at all flights that can be looked at, the oldest first.

    Waits for Redis, for about two seconds at most.

    :raises Draining: this process has closed its objects already.
    """
    flights = service.flights
    live = flights.live(MOST_LOOKED_AT)
    return BoardShown(
        at=moment(int(time.time() * 1000)),
        version=__version__,
        mode=service.settings.mode,
        coordination=cast("Coordination", flights.coordination),
        worker=_worker(service),
        live=_live(live, flights.worker),
        savings=_savings(service.shared.savings.read()),
        breakers=sorted(_breakers(service), key=lambda each: (each.provider, each.model)),
        modules=list(_modules(service)),
    )


def _worker(service: Extension) -> WorkerShown:
    gauges = service.metrics.snapshot()
    return WorkerShown(
        id=service.flights.worker,
        pid=os.getpid(),
        draining=service.draining,
        flights=int(gauges.get(FLIGHTS_IN_FLIGHT.name, 0)),
        waiters=int(gauges.get(FLIGHT_WAITERS.name, 0)),
    )


def _live(live: LiveFlights, worker: str) -> LiveShown:
    return LiveShown(
        total=live.total, whole=live.whole, flights=[_flight(each, worker) for each in live.flights]
    )


def _flight(flight: LiveFlight, worker: str) -> LiveFlightShown:
    return LiveFlightShown(
        flight_id=flight.flight_id,
        stage=flight.stage,
        tenant=flight.tenant,
        state=flight.state,
        owner=flight.worker,
        here=flight.worker == worker,
        fence=flight.fence,
        ownerships=flight.ownerships,
        waiters=flight.waiters,
        followers=flight.followers,
        age_ms=flight.age_ms,
        silent_ms=flight.silent_ms,
    )


def _savings(saved: Saved) -> SavingsShown:
    share = 100 * saved.saved / saved.asked if saved.asked else 0.0
    return SavingsShown(
        asked=saved.asked,
        calls=saved.calls,
        saved=saved.saved,
        percent=round(min(share, 100.0), 1),
        whole=saved.whole,
    )


def _breakers(service: Extension) -> Iterator[BreakerShown]:
    known = service.guard.breakers()
    for target, breaker in known.items():
        yield _breaker(target.provider, target.model, breaker)
    for name, until in service.shared.watch.snapshot.open_until.items():
        provider, _, model = name.partition("/")
        left_s = until - time.monotonic()
        if left_s > 0 and (provider, model) not in known:
            yield BreakerShown(provider=provider, model=model, state="open", open_for_s=None)


def _breaker(provider: str, model: str, breaker: TargetBreaker) -> BreakerShown:
    open_for_s = None
    try:
        breaker.check()
    except CircuitOpen as error:
        open_for_s = round(error.retry_after_s or 0, 1)
    state = cast("BreakerState", breaker.state)
    return BreakerShown(provider=provider, model=model, state=state, open_for_s=open_for_s)


def _modules(service: Extension) -> Iterator[ModuleShown]:
    snapshot = service.shared.watch.snapshot
    decided = {*snapshot.paused, *snapshot.flags, *snapshot.rolled_back}
    for name in sorted(decided):
        yield ModuleShown.model_validate(snapshot.describe(name))
