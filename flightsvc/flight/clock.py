"""One clock for the deadlines of all waiters, instead of a timer each.

Ten thousand callers of one flight would mean ten thousand timers to set and to cancel; here
they share a set per tick, and leaving is a set operation.
"""

from __future__ import annotations

import heapq
import math
import time
from typing import Any, Final

import gevent
from gevent.event import Event
from gevent.hub import Waiter, get_hub

#: Deadlines are rounded up to this many seconds.
TICK_S: Final = 0.05


class _Expired:
    def __repr__(self) -> str:
        return "EXPIRED"


#: What a waiter is woken with when its deadline has passed.
EXPIRED: Final = _Expired()


class DeadlineClock:
    """Wakes waiters with :data:`EXPIRED` at their deadlines, at most one tick late."""

    def __init__(self) -> None:
        self._due: dict[int, set[Waiter[Any]]] = {}
        self._ticks: list[int] = []
        self._sooner = Event()
        self._greenlet: gevent.Greenlet[..., Any] | None = None

    def add(self, waiter: Waiter[Any], deadline: float) -> int:
        """Wake a waiter at a time of ``time.monotonic()``.

        :returns: the tick, to be given to :meth:`discard`.
        """
        tick = math.ceil(deadline / TICK_S)
        due = self._due.get(tick)
        if due is None:
            due = self._due[tick] = set()
            heapq.heappush(self._ticks, tick)
            if self._ticks[0] == tick:
                self._sooner.set()
        due.add(waiter)
        if self._greenlet is None:
            self._greenlet = gevent.spawn(self._run)
        return tick

    def discard(self, waiter: Waiter[Any], tick: int) -> None:
        """Forget a waiter that needs no waking any more."""
        due = self._due.get(tick)
        if due is not None:
            due.discard(waiter)

    def close(self) -> None:
        """Stop; no waiter is woken any more."""
        if self._greenlet is not None:
            self._greenlet.kill(block=False)
            self._greenlet = None

    def _run(self) -> None:
        while True:
            self._sooner.clear()
            wait = self._ticks[0] * TICK_S - time.monotonic() if self._ticks else None
            if wait is None or wait > 0:
                self._sooner.wait(wait)
                continue
            due = self._due.pop(heapq.heappop(self._ticks))
            if due:
                get_hub().loop.run_callback(_expire, due)


def _expire(due: set[Waiter[Any]]) -> None:
    # a waiter that is woken discards nothing: its tick is already gone
    for waiter in due:
        waiter.switch(EXPIRED)
