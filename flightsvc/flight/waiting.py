"""Greenlets that wait for one thing, each to its own deadline, woken in batches."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from gevent.hub import Waiter, get_hub

from flightsvc.flight.clock import EXPIRED, DeadlineClock

#: Waiters woken in one go before the event loop may do something else.
BATCH: Final = 200


class Waiters:
    """Who waits now.

    One that is woken is taken off first: it may begin to wait anew at once.
    """

    __slots__ = ("_waiting", "_waking")

    def __init__(self) -> None:
        self._waiting: dict[Waiter[Any], None] = {}
        #: of those who waited at the last wake, how many are still to be woken
        self._waking = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(self, clock: DeadlineClock, deadline: float) -> bool:
        """Wait to be woken.

        :param deadline: a time of ``time.monotonic()``.
        :returns: whether that happened before the deadline.
        """
        waiter: Waiter[Any] = Waiter()
        self._waiting[waiter] = None
        tick = clock.add(waiter, deadline)
        try:
            return waiter.get() is not EXPIRED
        finally:
            clock.discard(waiter, tick)
            self._waiting.pop(waiter, None)

    def wake(self) -> None:
        """Wake everybody who waits now, soon; never switches."""
        if self._waiting:
            if not self._waking:
                get_hub().loop.run_callback(self._wake)
            self._waking = len(self._waiting)

    def _wake(self) -> None:
        # those who wait anew stand at the end of the dict: they are not woken by the same news
        batch = list(islice(self._waiting, min(BATCH, self._waking)))
        self._waking = self._waking - len(batch) if batch else 0
        for waiter in batch:
            # one that was woken or killed by a waiter before it in this batch is gone already
            if self._waiting.pop(waiter, waiter) is None:
                waiter.switch(None)
        if self._waking:
            get_hub().loop.run_callback(self._wake)
