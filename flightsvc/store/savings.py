"""What all workers asked, called and saved in the last day.

Nothing is counted here: the metrics' own totals are read now and then, and what came since is added
to the counters that all workers share. No request pays for it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import gevent

from flightsvc.metrics import FLIGHT_CALLERS, FLIGHT_CALLS, FLIGHT_SAVED, Metric, Metrics
from flightsvc.store.counters import SharedCounters
from flightsvc.store.watch import SharedWatch

#: over which time, in s
WINDOW_S = 86_400.0
#: shortest time between two additions, in s
ADD_S = 3.0
#: longest time, in s, that a reader waits for the other workers' part: the counters are
#: sent once a second
HEAR_S = 1.5
#: what was last heard of all workers is shown for so long, in s
SHOWN_S = 30.0

#: names of the shared counters → whose total they are
COUNTED: dict[str, Metric] = {
    "savings asked": FLIGHT_CALLERS,
    "savings calls": FLIGHT_CALLS,
    "savings saved": FLIGHT_SAVED,
}


@dataclass(frozen=True, slots=True)
class Saved:
    """Counts of a day, to a tenth of it.

    :param asked: callers.
    :param calls: of the model.
    :param saved: answers for which none was made.
    :param whole: whether they are those of all workers; else this one's.
    """

    asked: int
    calls: int
    saved: int
    whole: bool


class Savings:
    """Adds this worker's part, and reads the whole. A duty of the watch."""

    every_s = ADD_S

    def __init__(
        self, counters: SharedCounters, watch: SharedWatch, metrics: Metrics, *, shares: bool
    ) -> None:
        self._counters = counters
        self._watch = watch
        self._metrics = metrics
        self._shares = shares
        self._added = dict.fromkeys(COUNTED, 0)
        self._heard: Saved | None = None
        self._heard_at = 0.0

    def pending(self) -> bool:
        return any(self._metrics.total(each) != self._added[name] for name, each in COUNTED.items())

    def send(self) -> None:
        """Hand on what came since; the counters send it."""
        for name, metric in COUNTED.items():
            total = self._metrics.total(metric)
            new = total - self._added[name]
            self._added[name] = total
            if new < 0:  # a process that forked began from nothing
                new = total
            # nothing, too: so all are told of at once, and fit each other
            self._counters.count(name, WINDOW_S, new)

    def read(self) -> Saved:
        """The last day. Waits a moment for what the other workers counted; never raises."""
        if self._watch.up or not self._shares:  # else it waits for Redis where it is
            self.send()
            self._watch.wake()
        limit = time.monotonic() + HEAR_S
        while self._may_hear() and not self._has_heard() and time.monotonic() < limit:
            gevent.sleep(0.02)
        asked, calls, saved = (self._counters.total(name, WINDOW_S) for name in COUNTED)
        now, whole = time.monotonic(), self._may_hear() and self._has_heard()
        found = Saved(asked, calls, saved, whole)
        if whole:
            self._heard, self._heard_at = found, now
        elif self._heard is not None and now - self._heard_at < SHOWN_S:
            return self._heard
        return found

    def _may_hear(self) -> bool:
        return self._shares and self._watch.up

    def _has_heard(self) -> bool:
        return all(self._counters.heard(name, WINDOW_S) for name in COUNTED)
