"""What alert rules count on: all workers together, or this one alone."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Protocol


class Counters(Protocol):
    """Counts over windows of time that end now. ``store.counters`` has those of all workers."""

    def count(self, name: str, window_s: float, times: int = 1) -> None:
        """It happened.

        :param window_s: the window over which it will be asked for, in s.
        """

    def total(self, name: str, window_s: float) -> int:
        """How often within the window; others' part may be some seconds old."""

    def claim_once(self, name: str, window_s: float) -> bool:
        """True for the first who asks within ``window_s`` of the last True; False for others."""


class LocalCounters:
    """Counts of this process, to the second; for programs that share nothing.

    :param clock: seconds that only rise.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: dict[tuple[str, float], deque[tuple[int, int]]] = {}
        self._claims: dict[str, float] = {}

    def count(self, name: str, window_s: float, times: int = 1) -> None:
        """See :class:`Counters`."""
        counts, second = self._current(name, window_s), int(self._clock())
        if counts and counts[-1][0] == second:
            counts[-1] = (second, counts[-1][1] + times)
        else:
            counts.append((second, times))

    def total(self, name: str, window_s: float) -> int:
        """See :class:`Counters`."""
        return sum(times for _, times in self._current(name, window_s))

    def claim_once(self, name: str, window_s: float) -> bool:
        """See :class:`Counters`."""
        now = self._clock()
        if now < self._claims.get(name, now):
            return False
        self._claims[name] = now + window_s
        return True

    def _current(self, name: str, window_s: float) -> deque[tuple[int, int]]:
        """The counts of the window; a second that it cuts counts whole."""
        counts = self._counts.setdefault((name, window_s), deque())
        since = self._clock() - window_s
        while counts and counts[0][0] + 1 <= since:
            counts.popleft()
        return counts
