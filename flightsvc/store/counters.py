"""Counters that all workers share: over windows, and failures in a row.

Nothing here waits for Redis: a worker adds up by itself, and the watch's greenlet sends what
gathered at most once a second, in one round trip that also brings back what all workers saw.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from flightsvc.metrics import SHARED_DROPPED, Metrics
from flightsvc.store import verbs
from flightsvc.store.errors import StoreError
from flightsvc.store.modules import streak_of
from flightsvc.store.names import SharedNames
from flightsvc.store.nowhere import OK, Scripts
from flightsvc.store.watch import SharedWatch
from flightsvc.store.windows import Count, LocalWindows

#: how long failures in a row are remembered after the last of them, in ms
STREAKS_TTL_MS = 86_400_000
#: shortest time between two sendings, in s
SEND_S = 1.0
#: what could not be sent for so long, in s, is too old to count as now
OLDEST_S = 5.0
#: what the others saw is believed for so long, in s, and for half the window at most
BELIEVED_S = 3.0
#: names that a worker counts at most
MOST_NAMES = 2_000


class Streak(NamedTuple):
    """Failures of one code in a row, over all workers.

    :param failures: how many, without a success of the module between.
    """

    module: str
    code: str
    failures: int


@dataclass(slots=True)
class Outcomes:
    """What happened to a module: whether it succeeded, and what failed after that."""

    succeeded: bool = False
    failures: dict[str, int] = field(default_factory=dict)

    def then(self, later: Outcomes) -> Outcomes:
        """This, and what came after it."""
        if later.succeeded:
            return later
        both = dict(self.failures)
        for code, times in later.failures.items():
            both[code] = both.get(code, 0) + times
        return Outcomes(self.succeeded, both)


@dataclass(slots=True)
class _Unsent:
    times: int
    since: float


class SharedCounters:
    """Counts of all workers. No method but :meth:`claim_once` waits; none raises.

    A duty of the watch.

    :param worker: names this worker in a claim.
    :param on_streak: hears, in the watch's greenlet, how each streak stands that grew here; it
        may ask Redis, and must not wait for anything else.
    """

    every_s = SEND_S

    def __init__(
        self,
        store: Scripts,
        names: SharedNames,
        watch: SharedWatch,
        metrics: Metrics,
        *,
        worker: str,
        on_streak: Callable[[Streak], None] = lambda _streak: None,
    ) -> None:
        self._store = store
        self._names = names
        self._watch = watch
        self._metrics = metrics
        self._worker = worker
        self._on_streak = on_streak
        self._here = LocalWindows()
        self._unsent: dict[Count, _Unsent] = {}
        self._outcomes: dict[str, Outcomes] = {}
        self._totals: dict[Count, tuple[int, float]] = {}
        self._streaks: dict[tuple[str, str], tuple[int, float]] = {}
        self._claimed: dict[str, float] = {}

    def count(self, name: str, window_s: float, times: int = 1) -> None:
        """It happened.

        :param name: what, such as a code and a stage; never a request's own text.
        :param window_s: the window over which it is counted, in s.
        """
        count = (name, int(window_s * 1000))
        if count not in self._here and len(self._here) >= MOST_NAMES:
            self._metrics.count(SHARED_DROPPED, times, kind="counts")
            return
        self._here.add(count, times)
        unsent, now = self._unsent.get(count), time.monotonic()
        if unsent is None or now - unsent.since > OLDEST_S:
            unsent = self._unsent[count] = _Unsent(0, now)
        unsent.times += times
        self._watch.start()

    def total(self, name: str, window_s: float) -> int:
        """How often it happened over the window, to a tenth of it, with what was just counted.

        A worker hears of the others when it counts itself; else it knows its own part only.
        """
        count = (name, int(window_s * 1000))
        told, at = self._totals.get(count, (0, 0.0))
        unsent = self._unsent.get(count)
        is_fresh = time.monotonic() - at < min(BELIEVED_S, window_s / 2)
        believed = told if is_fresh else 0
        return max(self._here.total(count), believed + (unsent.times if unsent else 0))

    def heard(self, name: str, window_s: float) -> bool:
        """Whether :meth:`total` has all workers' part now; counting 0 times makes it ask."""
        _, at = self._totals.get((name, int(window_s * 1000)), (0, 0.0))
        return time.monotonic() - at < min(BELIEVED_S, window_s / 2)

    def succeeded(self, module: str) -> None:
        """A call of this module (its full name) has succeeded: its failures in a row end."""
        self._outcomes[module] = Outcomes(succeeded=True)
        self._watch.start()

    def failed(self, module: str, code: str) -> None:
        """A call of this module (its full name) has failed with this code."""
        failures = self._outcomes.setdefault(module, Outcomes()).failures
        failures[code] = failures.get(code, 0) + 1
        self._watch.start()

    def streak(self, module: str, code: str) -> int:
        """Failures of one code in a row, over all workers, with what was just counted here."""
        snapshot, outcomes = self._watch.snapshot, self._outcomes.get(module, Outcomes())
        told, at = self._streaks.get((module, code), (0, 0.0))
        if at < snapshot.read_at:
            told = snapshot.streaks.get((module, code), 0)
        return outcomes.failures.get(code, 0) + (0 if outcomes.succeeded else told)

    def claim_once(self, name: str, window_s: float) -> bool:
        """Whether the caller is the first of all workers to ask within the window.

        Waits for Redis for at most ``redis_timeout_ms``. Without Redis it is the first of this
        worker.
        """
        now = time.monotonic()
        if now < self._claimed.get(name, 0.0):
            return False
        self._claimed[name] = now + window_s
        if not self._watch.up:
            return True
        token = f"{self._worker} {now}"
        try:
            args: list[str | int] = [token, int(window_s * 1000)]
            answer = self._store.run(verbs.TAKE, [self._names.claim(name)], args)
        except StoreError:
            return True
        if answer[0] == OK:
            return True
        self._claimed[name] = now + int(answer[1]) / 1000
        return False

    def pending(self) -> bool:
        return bool(self._unsent or self._outcomes)

    def send(self) -> None:
        unsent, self._unsent = self._unsent, {}
        outcomes, self._outcomes = self._outcomes, {}
        oldest = time.monotonic() - OLDEST_S
        counts = [count for count, each in unsent.items() if each.since >= oldest]
        keys = [self._names.streaks, *(self._names.count(*count) for count in counts)]
        args: list[str | int] = [STREAKS_TTL_MS, _json(outcomes)]
        for count in counts:
            args += [count[1], unsent[count].times]
        try:
            streaks, totals = self._store.run(verbs.TALLY, keys, args)
        except StoreError as error:
            if not error.maybe_done:  # rather too few than the same twice
                self._take_back(unsent, outcomes)
            raise
        now = time.monotonic()
        self._totals.update(zip(counts, ((total, now) for total in totals), strict=True))
        for name, failures in zip(streaks[::2], streaks[1::2], strict=True):
            module, code = streak_of(name)
            self._streaks[module, code] = int(failures), now
            self._on_streak(Streak(module, code, int(failures)))

    def _take_back(self, unsent: dict[Count, _Unsent], outcomes: dict[str, Outcomes]) -> None:
        for count, newer in self._unsent.items():
            older = unsent.get(count)
            unsent[count] = (
                newer if older is None else _Unsent(older.times + newer.times, older.since)
            )
        self._unsent = unsent
        for module, later in self._outcomes.items():
            outcomes[module] = outcomes.get(module, Outcomes()).then(later)
        self._outcomes = outcomes


def _json(outcomes: dict[str, Outcomes]) -> str:
    rows = [[module, each.succeeded, each.failures] for module, each in outcomes.items()]
    return json.dumps(rows, separators=(",", ":"))
