"""This worker's flights: a dict, and the waiters of each.

Duplicates inside one worker always meet here, before Redis is asked; where Redis is out of
reach, this is all the coordination there is (the first article's local single-flight).
Callers only wait, each to its own deadline: one that leaves, times out or is killed hurts
nobody else. No method switches greenlets between reading and changing the dict.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextvars import Context
from itertools import islice
from typing import TYPE_CHECKING, Any

from gevent import Greenlet, getcurrent
from gevent.hub import Waiter, get_hub

from flightsvc.errors import KeyConflict, NestedFlight, TooManyWaiters, WaitTimeout
from flightsvc.flight.clock import EXPIRED, DeadlineClock
from flightsvc.flight.key import FlightKey
from flightsvc.flight.state import End, Landed

if TYPE_CHECKING:
    from flightsvc.flight.call import Call, CallRun

#: Waiters woken in one go before the event loop may do something else.
BATCH = 200

_INSIDE = "flightsvc.inside"


def inside() -> tuple[LocalFlight, ...]:
    """The flights whose calls the current code runs inside of, outermost first.

    Greenlets that a call spawns belong to it: gevent hands the tree's locals down to them.
    """
    tree: dict[str, Any] = getattr(getcurrent(), "spawn_tree_locals", None) or {}
    callers: tuple[LocalFlight, ...] = tree.get(_INSIDE, ())
    return callers


def enter(flight: LocalFlight) -> None:
    """From here on, the current greenlet runs inside of a flight's call."""
    here: Any = getcurrent()
    here.spawn_tree_locals = {_INSIDE: flight.inside}


class LocalFlight:
    """One flight of this worker, from the first caller to the last answer.

    :param replay: whether an earlier answer is welcome.
    :param queued: whether the call itself says when it leaves its queue.
    """

    def __init__(self, key: FlightKey, call: Call, *, replay: bool, queued: bool) -> None:
        self.key = key
        self.call = call
        self.replay = replay
        self.queued = queued
        #: names this flight object towards Redis, never the worker
        self.token = uuid.uuid4().hex
        #: how it ended; set once
        self.end: End | None = None
        #: when the call returned or the news of its end arrived (monotonic)
        self.ended_at = 0.0
        #: the flights that this one's call waits for
        self.waits_for: list[LocalFlight] = []
        #: the running call, where this worker makes it
        self.run: CallRun | None = None
        #: whether Redis granted it after it had begun without
        self.adopted = False
        #: called when nobody needs its end any more
        self.on_unwanted: Callable[[], None] | None = None
        self.inside = (*inside(), self)
        self._waiters: dict[Waiter[Any], None] = {}

    @property
    def waiting(self) -> int:
        """How many callers wait now."""
        return len(self._waiters)

    def answers(self, replay: bool) -> bool:
        """Whether a caller that comes now may share this flight's end.

        :param replay: whether the caller takes an answer from before it asked.
        """
        if self.end is None:
            return True
        return replay and isinstance(self.end, Landed) and self.end.fallback is None

    def resolve(self, end: End) -> None:
        """Set the end and wake everybody; later calls change nothing."""
        if self.end is not None:
            return
        self.end = end
        self.ended_at = self.ended_at or time.monotonic()
        if self._waiters:
            get_hub().loop.run_callback(self._wake)
        if self.on_unwanted is not None:
            self.on_unwanted()

    def wait(self, clock: DeadlineClock, deadline: float) -> End | None:
        """Wait for the end.

        :param deadline: a time of ``time.monotonic()``.
        :returns: the end, or None if the deadline came first.
        """
        if self.end is not None:
            return self.end
        waiter: Waiter[Any] = Waiter()
        self._waiters[waiter] = None
        tick = clock.add(waiter, deadline)
        try:
            woken = waiter.get()
            return None if woken is EXPIRED else self.end
        finally:
            clock.discard(waiter, tick)
            if self._waiters.pop(waiter, waiter) is None and not self._waiters:
                self._deserted()

    def _deserted(self) -> None:
        if self.end is None and self.on_unwanted is not None:
            self.on_unwanted()

    def _wake(self) -> None:
        for waiter in list(islice(self._waiters, BATCH)):
            # one that was woken or killed by a waiter before it in this batch is gone already
            if self._waiters.pop(waiter, waiter) is None:
                waiter.switch(self.end)
        if self._waiters:
            get_hub().loop.run_callback(self._wake)


class LocalSingleFlight:
    """The flights of one worker.

    :param max_waiters: callers that may wait at once; more are turned away.
    """

    def __init__(self, max_waiters: int) -> None:
        self._flights: dict[str, LocalFlight] = {}
        #: ended, and followed by another before Redis could be told
        self._untold: set[LocalFlight] = set()
        self._clock = DeadlineClock()
        self._max_waiters = max_waiters
        self.waiters = 0

    def __len__(self) -> int:
        return len(self._flights) + len(self._untold)

    def flights(self) -> list[LocalFlight]:
        """All flights in the air, and those of whose end Redis does not know yet."""
        return [*self._untold, *self._flights.values()]

    def join(
        self,
        key: FlightKey,
        call: Call,
        fly: Callable[[LocalFlight], None],
        *,
        replay: bool = True,
        queued: bool = False,
    ) -> tuple[LocalFlight, bool]:
        """The flight for a key; started in a greenlet of its own if there is none.

        :param fly: makes the flight and resolves it.
        :returns: the flight, and whether this caller started it.
        :raises TooManyWaiters: the cap is reached, and the caller would have to wait.
        :raises KeyConflict: the explicit key stands for another request here.
        :raises NestedFlight: waiting for this flight would never end.
        """
        flight = self._flights.get(key.flight_id)
        if flight is not None and not flight.answers(replay):
            # ended, only Redis does not know it yet: this caller asks anew
            self._untold.add(flight)
            flight = None
        if self.waiters >= self._max_waiters and (flight is None or flight.end is None):
            raise TooManyWaiters(retry_after_s=1)
        if flight is not None:
            if flight.key.digest != key.digest:
                raise KeyConflict()
            _refuse_circle(flight)
            return flight, False
        flight = LocalFlight(key, call, replay=replay, queued=queued)
        self._flights[key.flight_id] = flight
        greenlet = Greenlet(self._fly, flight, fly)
        # not the first caller's context: its request may be over long before the flight is
        greenlet.gr_context = Context()
        greenlet.start()
        return flight, True

    def wait(self, flight: LocalFlight, deadline: float) -> End:
        """Wait for a flight.

        :param deadline: a time of ``time.monotonic()``.
        :raises WaitTimeout: the deadline passed; the flight goes on.
        """
        self.waiters += 1
        callers = inside()
        if callers:
            callers[-1].waits_for.append(flight)
        try:
            end = flight.wait(self._clock, deadline)
        finally:
            self.waiters -= 1
            if callers:
                callers[-1].waits_for.remove(flight)
        if end is None:
            raise WaitTimeout(retry_after_s=1)
        return end

    def leave(self, flight: LocalFlight) -> None:
        """Take a flight off the dict, if it is still the one there."""
        self._untold.discard(flight)
        if self._flights.get(flight.key.flight_id) is flight:
            del self._flights[flight.key.flight_id]

    def close(self) -> None:
        """Stop the clock of the deadlines."""
        self._clock.close()

    def _fly(self, flight: LocalFlight, fly: Callable[[LocalFlight], Any]) -> None:
        try:
            fly(flight)
        finally:
            self.leave(flight)


def _refuse_circle(flight: LocalFlight) -> None:
    """Refuse to wait, from inside a call, for a flight that waits for that call."""
    callers = inside()
    if not callers:
        return
    seen, reach = set(), [flight]
    while reach:
        here = reach.pop()
        if here in callers:
            raise NestedFlight()
        if here not in seen:
            seen.add(here)
            reach.extend(here.waits_for)
