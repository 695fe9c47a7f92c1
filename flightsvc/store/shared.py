"""What the workers of a namespace share beside their flights, as one object a worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.store import verbs
from flightsvc.store.breakers import SharedBreakers
from flightsvc.store.counters import SharedCounters, Streak
from flightsvc.store.errors import StoreError
from flightsvc.store.events_sink import StateEvents
from flightsvc.store.hints import BreakerHints
from flightsvc.store.last_good import LastGood
from flightsvc.store.leases import ProbeLeases
from flightsvc.store.modules import Flag, Modules
from flightsvc.store.names import SharedNames
from flightsvc.store.nowhere import Nowhere, Scripts
from flightsvc.store.savings import Savings
from flightsvc.store.switches import CHECKLIST, Switches
from flightsvc.store.watch import SharedWatch

#: how long workers are told of forgotten flights, in ms: longer than one remembers by itself
FORGOTTEN_TTL_MS = 600_000


class Trip(NamedTuple):
    """What failures in a row bring about.

    :param after: so many of a code raise the flag "needs a person"; 0: never.
    :param pauses: whether they pause the module as well.
    """

    after: int = 0
    pauses: bool = False


class _RollBackEvent(Protocol):
    @property
    def code(self) -> str: ...
    @property
    def stage(self) -> str: ...


class SharedState:
    """Switches, breaker hints, leases, counters and events; nothing here waits but the switches
    and the leases.

    :param store: None in mode ``local``: then nothing is shared, and nothing can be paused.
    :param worker: names this worker.
    :param trips: what a code's failures in a row bring about.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        store: Scripts | None,
        *,
        worker: str = "",
        trips: Callable[[str], Trip] = lambda _code: Trip(),
    ) -> None:
        names, shares = SharedNames(settings.namespace), store is not None
        scripts: Scripts = store or Nowhere()
        self._names, self._scripts = names, scripts
        self._trips = trips
        self._listeners: list[Callable[[Streak], None]] = []
        self._flag_listeners: list[Callable[[Flag], None]] = []
        self.modules = Modules.of(settings)
        self.switches = Switches(scripts, names, self.modules)
        self.watch = SharedWatch(self.switches, metrics, shares=shares)
        self.hints = BreakerHints(scripts, names, self.watch)
        self.probes = ProbeLeases(scripts, names, self.watch)
        self.breakers = SharedBreakers(self.watch, self.hints, self.probes)
        self.last_good = LastGood(scripts, names, self.watch, shares=shares)
        self.counters = SharedCounters(
            scripts, names, self.watch, metrics, worker=worker, on_streak=self._hear
        )
        self.savings = Savings(self.counters, self.watch, metrics, shares=shares)
        self.events = StateEvents(
            scripts,
            names,
            self.watch,
            metrics,
            shares=shares,
            handlers={"rollback_model": self._roll_back},
        )
        if shares:
            self.watch.attend(
                self.hints, self.events, self.savings, self.counters, self.last_good
            )

    def on_streak(self, listener: Callable[[Streak], None]) -> None:
        """Have ``listener`` hear how each streak stands that grew in this worker; it must not
        wait."""
        self._listeners.append(listener)

    def on_flag(self, listener: Callable[[Flag], None]) -> None:
        """Have ``listener`` hear of each flag that this worker raised; it must not wait."""
        self._flag_listeners.append(listener)

    def tell_forgotten(self, marks: Sequence[str]) -> int:
        """Have every worker forget these flights, or hear these marks, within a second.

        :returns: Redis's time in ms since 1970; 0 if there was nothing to tell.
        :raises StoreError: Redis could not be told.
        """
        if not marks:
            return 0
        keys = [self._names.forgotten]
        reply = self._scripts.run(verbs.TELL_FORGOTTEN, keys, [FORGOTTEN_TTL_MS, *marks])
        return int(reply[1])

    def start(self) -> None:
        """Look for the first time, so that no request comes before; then go on looking.

        Waits for Redis for at most ``redis_timeout_ms``.
        """
        self.watch.begin()

    def close(self) -> None:
        """Send what waits, if Redis is there, and stop."""
        self.probes.close()
        self.watch.close()

    def _hear(self, streak: Streak) -> None:
        for listener in self._listeners:
            listener(streak)
        trip = self._trips(streak.code)
        if not trip.after or streak.failures < trip.after:
            return
        if self.watch.needs_person(streak.module) is not None:
            return
        raised = self.switches.need_person(
            streak.module, streak.code, trip.after, pause=trip.pauses
        )
        flag: Flag | None = None
        with suppress(StoreError):  # it stands, whether or not it can be read now
            flag = self.watch.refresh().flags.get(streak.module)
        if raised:
            for told in self._flag_listeners:
                told(flag or Flag(streak.module, streak.code, trip.after, at_ms=0))

    def _roll_back(self, event: _RollBackEvent) -> None:
        reason = f"the checklist asks for it: {event.code}"
        self.switches.roll_back(
            f"stage:{event.stage}", by=CHECKLIST, reason=reason, code=event.code
        )
        self.watch.refresh()
