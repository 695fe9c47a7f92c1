"""How this process itself is doing: whether its greenlets get their turn, and its memory."""

from __future__ import annotations

import os
import resource
import sys
from collections import deque
from pathlib import Path
from time import monotonic

import gevent

from flightsvc.metrics.names import PROCESS_HUB_LAG, PROCESS_MEMORY
from flightsvc.metrics.recorder import Metrics

#: time between two looks at the hub, in s
LOOK_S = 0.1
#: a lag is shown for so long, in s: above the time between two sendings, so that none is missed
SHOWN_S = 2.0

_STATM = Path("/proc/self/statm")


class ProcessWatch:
    """Gauges of one process; a small greenlet measures how late its turns come.

    What blocks the hub (a computation, a call that gevent does not know) holds up every caller
    and every heartbeat of the worker.

    :param metrics: where the gauges go.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._late: deque[tuple[float, float]] = deque()  # when, how late; in s
        self._due = 0.0
        self._loop: gevent.Greenlet[[], None] | None = None
        metrics.gauge(PROCESS_HUB_LAG, self.lag_ms)
        metrics.gauge(PROCESS_MEMORY, memory_bytes)

    def start(self) -> None:
        """Begin to look."""
        self._due = monotonic() + LOOK_S
        self._loop = gevent.spawn(self._look)

    def close(self) -> None:
        """Look no more."""
        if self._loop is not None:
            self._loop.kill(block=False)
            self._loop = None

    def lag_ms(self) -> float:
        """The longest wait for a turn lately, in ms; one that has not ended yet counts too."""
        now = monotonic()
        while self._late and self._late[0][0] < now - SHOWN_S:
            self._late.popleft()
        waiting = now - self._due if self._loop is not None else 0.0
        return 1_000 * max(0.0, waiting, *(late for _, late in self._late))

    def _look(self) -> None:
        while True:
            gevent.sleep(max(0.0, self._due - monotonic()))
            now = monotonic()
            self._late.append((now, now - self._due))
            self._due = now + LOOK_S


def memory_bytes() -> float:
    """Resident memory of this process, in bytes; where the system does not say, its peak."""
    try:
        return float(int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return float(peak if sys.platform == "darwin" else peak * 1024)
