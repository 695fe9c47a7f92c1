"""So many calls at once, so many in the queue, first come first served."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from gevent.event import Event

from flightsvc.errors import Overloaded

#: what a refused caller is told to wait, in s
RETRY_AFTER_S = 1.0


class Bulkhead:
    """The places of one stage in this worker. For greenlets of one thread.

    A free place is handed straight to the head of the queue, never put down in between: so nobody
    who comes later overtakes (gevent's own semaphore lets a late comer slip in).

    :param places: calls at once.
    :param queue: calls that may wait for a place; 0: none waits.
    """

    def __init__(self, places: int, queue: int) -> None:
        self._places = places
        self._queue = queue
        self._in_use = 0
        self._waiting: deque[Event] = deque()  # an event that is set holds a place

    def in_use(self) -> int:
        """Places taken."""
        return self._in_use

    def use(self) -> float:
        """Share of the places that are taken."""
        return self._in_use / self._places

    def queued(self) -> int:
        """Callers that wait for a place."""
        return len(self._waiting)

    @contextmanager
    def place(self, wait_s: float) -> Iterator[None]:
        """Hold a place inside the ``with`` block; given back however the block ends.

        :param wait_s: longest time in the queue, in s.
        :raises Overloaded: at once if the queue is full; after ``wait_s`` if no place came free.
        """
        self._take(wait_s)
        try:
            yield
        finally:
            self._give_back()

    def _take(self, wait_s: float) -> None:
        if self._in_use < self._places:
            self._in_use += 1
        elif len(self._waiting) >= self._queue:
            raise Overloaded(retry_after_s=RETRY_AFTER_S)
        else:
            self._wait(wait_s)

    def _wait(self, wait_s: float) -> None:
        mine = Event()
        self._waiting.append(mine)
        try:
            mine.wait(wait_s)
        except BaseException:  # killed in the queue, or just as a place was handed over
            if mine.is_set():
                self._give_back()
            else:
                self._waiting.remove(mine)
            raise
        if not mine.is_set():
            self._waiting.remove(mine)
            raise Overloaded("No place came free in time.", retry_after_s=RETRY_AFTER_S)

    def _give_back(self) -> None:
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self._in_use -= 1
