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
from typing import TYPE_CHECKING, Any, NamedTuple

from gevent import Greenlet

from flightsvc.errors import KeyConflict, TooManyWaiters, WaitTimeout
from flightsvc.flight.buffer import ChunkBuffer
from flightsvc.flight.clock import DeadlineClock
from flightsvc.flight.key import FlightKey
from flightsvc.flight.nesting import inside, refuse_circle
from flightsvc.flight.state import End, Landed
from flightsvc.flight.waiting import Waiters

if TYPE_CHECKING:
    from flightsvc.flight.call import Call, CallRun
    from flightsvc.flight.feed import ChunkFeed


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
        #: what callers that stream read
        self.buffer = ChunkBuffer()
        #: what it read of another worker's owner, where it followed one
        self.feed: ChunkFeed | None = None
        #: whether its call is stopped when nobody waits for it any more, here or elsewhere
        self.abandon = False
        #: called when nobody here needs its end any more
        self.on_unwanted: Callable[[], None] | None = None
        self.inside = (*inside(), self)
        self._waiters = Waiters()
        self._streams = 0

    @property
    def waiting(self) -> int:
        """How many callers wait now."""
        return len(self._waiters) + self._streams

    @property
    def unwanted(self) -> bool:
        """Whether its call may be stopped, as far as this worker's callers are concerned."""
        return self.abandon and self.end is None and not self.waiting

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
        if isinstance(end, Landed):
            self.buffer.settle(None if end.fallback else end.fence)
        self._waiters.wake()
        self.buffer.wake()
        if self.on_unwanted is not None:
            self.on_unwanted()

    def wait(self, clock: DeadlineClock, deadline: float) -> End | None:
        """Wait for the end.

        :param deadline: a time of ``time.monotonic()``.
        :returns: the end, or None if the deadline came first.
        """
        if self.end is not None:
            return self.end
        try:
            return self.end if self._waiters.wait(clock, deadline) else None
        finally:
            self._left()

    def stream(self) -> None:
        """One more caller streams."""
        self._streams += 1

    def leave(self) -> None:
        """A caller that streamed has its end, or needs none."""
        self._streams -= 1
        self._left()

    def _left(self) -> None:
        if self.end is None and not self.waiting and self.on_unwanted is not None:
            self.on_unwanted()


class Reading(NamedTuple):
    """One caller that streams.

    :param clock: of its deadlines.
    :param inside: the flights whose calls it runs inside of.
    """

    flight: LocalFlight
    clock: DeadlineClock
    inside: tuple[LocalFlight, ...]


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
            refuse_circle(flight)
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
        callers = self._comes(flight)
        try:
            end = flight.wait(self._clock, deadline)
        finally:
            self._goes(flight, callers)
        if end is None:
            raise WaitTimeout(retry_after_s=1)
        return end

    def begin_stream(self, flight: LocalFlight) -> Reading:
        """A caller comes who reads a flight's chunks; it must be told to :meth:`end_stream`."""
        flight.stream()
        return Reading(flight, self._clock, self._comes(flight))

    def end_stream(self, reading: Reading) -> None:
        """That caller goes."""
        self._goes(reading.flight, reading.inside)
        reading.flight.leave()

    def _comes(self, flight: LocalFlight) -> tuple[LocalFlight, ...]:
        self.waiters += 1
        callers = inside()
        if callers:
            callers[-1].waits_for.append(flight)
        return callers

    def _goes(self, flight: LocalFlight, callers: tuple[LocalFlight, ...]) -> None:
        self.waiters -= 1
        if callers:
            callers[-1].waits_for.remove(flight)

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
