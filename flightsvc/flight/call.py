"""The one call of a flight, in a greenlet of its own, and the news about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass
from enum import Enum
from queue import Empty
from typing import Any

from gevent import Greenlet
from gevent.event import Event
from gevent.queue import SimpleQueue

from flightsvc.errors import BudgetExhausted, ResultRejected
from flightsvc.flight.coordinator import Ownership
from flightsvc.flight.emitting import Outbox
from flightsvc.flight.local import LocalFlight
from flightsvc.flight.nesting import enter
from flightsvc.metrics import FLIGHT_CALL_TIME, FLIGHT_CALLS, Metrics
from flightsvc.settings import Settings

#: A call gets this many seconds beyond its budget, so that the guard's own error comes first.
MARGIN_S = 0.25

#: Bytes that one call may emit.
MOST_EMITTED = 64 * 1024 * 1024

Call = Callable[["FlightContext"], Any]


class Signal(Enum):
    """What else a flight may hear while its call runs."""

    #: another owner holds the flight
    STALE = "stale"
    #: Redis has no such flight any more
    LOST = "lost"
    #: this worker is about to stop
    DRAIN = "drain"
    #: no heartbeat got through for too long, and the mode forbids to go on
    UNBEATEN = "unbeaten"
    #: no caller waits in this worker any more
    UNWANTED = "unwanted"


@dataclass(frozen=True, slots=True)
class Returned:
    """The call returned."""

    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """The call raised."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class Adopted:
    """A flight that began without Redis was granted after all."""

    own: Ownership


News = Returned | Raised | Adopted | Signal


class FlightContext:
    """What a call may know of its flight."""

    def __init__(self, run: CallRun) -> None:
        self._run = run
        #: set when the call's answer is no longer wanted
        self.cancelled = Event()
        #: whether that is because it took longer than its flight may
        self.overdue = False

    @property
    def flight_id(self) -> str:
        """The flight, 32 hex digits."""
        return self._run.flight.key.flight_id

    @property
    def stage(self) -> str:
        """The kind of request."""
        return self._run.flight.key.stage

    @property
    def fence(self) -> int:
        """The number of this ownership; 0 where Redis has no part in it."""
        return self._run.own.fence if self._run.own else 0

    @property
    def attempt(self) -> int:
        """Which ownership of this flight it is, from 1."""
        return self._run.own.attempt if self._run.own else 1

    def mark_running(self) -> None:
        """Say that the call left its queue: the model is about to be asked."""
        self._run.mark_running()

    def emit(self, chunk: bytes) -> None:
        """Hand a chunk to every caller that streams, here and in other workers; never blocks.

        What is returned at the end is the answer all the same: who comes later gets only that.

        :raises ResultRejected: if it is not bytes, or all chunks together are too much.
        """
        self._run.emit(chunk)


class CallRun:
    """The call of one flight and the queue of news about it.

    :param on_running: tells Redis that the model is about to be asked; returns a
        :class:`Signal` if the flight is no longer ours.
    """

    def __init__(
        self, flight: LocalFlight, on_running: Callable[[Ownership], Signal | None]
    ) -> None:
        self.flight = flight
        #: the ownership it runs under; None without Redis
        self.own: Ownership | None = None
        self.running = False
        #: when the call began and ended (monotonic)
        self.began_at = time.monotonic()
        self._ended_at: float | None = None
        #: tells the other workers the chunks, where they can know of this call
        self.outbox: Outbox | None = None
        #: where what it emits goes
        self.writer = flight.buffer.begin(0)
        self._emitted = 0
        self._on_running = on_running
        self._settled = Event()
        self._news: SimpleQueue[News] = SimpleQueue()
        self._context = FlightContext(self)
        self._greenlet = Greenlet(self._body)
        self._greenlet.gr_context = Context()

    @property
    def ended_at(self) -> float:
        """When the call ended; now, while it runs."""
        return self._ended_at or time.monotonic()

    @contextmanager
    def flying(self, metrics: Metrics) -> Iterator[None]:
        """Make the call while the block runs; after it, whatever still runs is stopped."""
        stage = self.flight.key.stage
        metrics.count(FLIGHT_CALLS, stage=stage)
        self.flight.run = self
        self.flight.on_unwanted = self._deserted
        self._greenlet.start()
        self._deserted()  # whoever started it may be gone already
        try:
            yield
        finally:
            self.stop()
            if self.outbox is not None:
                self.outbox.close()
            self.flight.run = self.flight.on_unwanted = None
            metrics.time(FLIGHT_CALL_TIME, self.ended_at - self.began_at, stage=stage)

    def limit(self, settings: Settings) -> float:
        """When the call must have ended (monotonic)."""
        return self.began_at + settings.stage(self.flight.key.stage).span_ms / 1000 + MARGIN_S

    def tell(self, news: News) -> None:
        """Tell the flight something; never blocks."""
        self._news.put(news)

    def next_news(self, limit: float) -> News:
        """The next news; at a time of ``time.monotonic()``, that the budget is used up."""
        try:
            return self._news.get(timeout=max(0.0, limit - time.monotonic()))
        except Empty:
            self._context.overdue = self._ended_at is None
            return Raised(BudgetExhausted())

    def told_to_let_go(self, within_s: float) -> bool:
        """Wait a while; whether this worker was told to stop meanwhile."""
        return self.next_news(time.monotonic() + within_s) is Signal.DRAIN

    def settle(self) -> None:
        """Let a call go on that waits to hear whether its flight is still its own."""
        self._settled.set()

    def stop(self) -> None:
        """End the call, if it still runs; what it would still say is not heard."""
        self._context.cancelled.set()
        self._greenlet.kill(block=False)

    def adopt(self, own: Ownership) -> None:
        """Go on under an ownership that came after all."""
        self.own, self.flight.adopted = own, True
        signal = self._on_running(own) if self.running else None
        if signal is not None:
            self.tell(signal)

    def mark_running(self) -> None:
        """See :meth:`FlightContext.mark_running`; once is enough."""
        if self.running:
            return
        self.running = True
        signal = self._on_running(self.own) if self.own else None
        if signal is not None:
            self._settled.clear()
            self.tell(signal)
            self._settled.wait()

    def emit(self, chunk: bytes) -> None:
        """See :meth:`FlightContext.emit`."""
        if not isinstance(chunk, bytes):
            raise ResultRejected(f"a chunk is bytes, not {type(chunk).__name__}")
        self._emitted += len(chunk)
        if self._emitted > MOST_EMITTED:
            raise ResultRejected(f"the chunks are more than {MOST_EMITTED} bytes")
        self.writer.put(self.writer.count, chunk)
        if self.outbox is not None:
            self.outbox.add(len(chunk))

    def whole(self, fence: int) -> None:
        """The call returned: what it emitted is a whole answer, of this fence."""
        self.writer.close(fence)

    def _deserted(self) -> None:
        if self.flight.unwanted:
            self.tell(Signal.UNWANTED)

    def _body(self) -> None:
        enter(self.flight)
        try:
            if not self.flight.queued:
                self.mark_running()
            news: News = Returned(self.flight.call(self._context))
        # SystemExit would end the worker, GreenletExit would end in silence: both are failures
        except BaseException as error:
            news = Raised(error)
        self._ended_at = self.flight.ended_at = time.monotonic()
        self.tell(news)
        if isinstance(news, Raised) and isinstance(news.error, KeyboardInterrupt):
            raise news.error
