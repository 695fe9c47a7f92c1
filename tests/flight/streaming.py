"""What the tests of streaming share: a model that emits chunks, and callers that read them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import gevent
from gevent.event import Event

from flightsvc.errors import FlightSvcError
from flightsvc.flight import (
    Chunk,
    End,
    FlightContext,
    FlightKey,
    FlightResult,
    Restart,
    SingleFlight,
)
from tests.flight.flying import count
from tests.processes import wait_until

KEY = FlightKey("chat", "a question")


def text(chunks: int, of: str = "c") -> list[bytes]:
    """Numbered chunks."""
    return [f"{of}{n};".encode() for n in range(chunks)]


class Talker:
    """A model that emits chunks, and then answers how many.

    :param chunks: what it emits.
    :param gap_s: time before each chunk but the first.
    :param held: before each chunk it waits for :meth:`let_go`.
    :param error: what it raises at the end instead of answering.
    """

    def __init__(
        self,
        chunks: Iterable[bytes],
        *,
        gap_s: float = 0.0,
        held: bool = False,
        error: BaseException | None = None,
    ) -> None:
        self.chunks = list(chunks)
        self.gap_s = gap_s
        self.error = error
        self.fences: list[int] = []
        #: contexts of the calls, in the order they began
        self.contexts: list[FlightContext] = []
        #: set when a call has begun
        self.began = Event()
        #: calls that came to their end
        self.ended = 0
        #: calls that were stopped
        self.stopped = 0
        #: when the last call ended or was stopped (monotonic)
        self.ended_at = 0.0
        self._held = held
        self._allowed = 0
        self._news = Event()

    @property
    def calls(self) -> int:
        """How many calls were made."""
        return len(self.fences)

    def let_go(self, chunks: int | None = None) -> None:
        """Let held calls emit so many chunks more, or everything."""
        self._allowed = len(self.chunks) + 1 if chunks is None else self._allowed + chunks
        self._news.set()

    def __call__(self, ctx: FlightContext) -> Any:
        self.fences.append(ctx.fence)
        self.contexts.append(ctx)
        self.began.set()
        try:
            self._talk(ctx)
        except gevent.GreenletExit:
            self.stopped += 1
            raise
        finally:
            self.ended_at = time.monotonic()
        self.ended += 1
        if self.error is not None:
            raise self.error
        return {"chunks": len(self.chunks)}

    def _talk(self, ctx: FlightContext) -> None:
        for number, chunk in enumerate(self.chunks):
            self._wait_for(number)
            if number:
                gevent.sleep(self.gap_s)
            ctx.emit(chunk)
        self._wait_for(len(self.chunks))

    def _wait_for(self, number: int) -> None:
        while self._held and self._allowed <= number:
            self._news.clear()
            self._news.wait()


class Listener:
    """A caller that streams, in a greenlet of its own.

    :param pause_s: how long it does something else after each chunk.
    """

    def __init__(
        self,
        flights: SingleFlight,
        key: FlightKey,
        call: Callable[[FlightContext], Any],
        *,
        pause_s: float = 0.0,
        **options: Any,
    ) -> None:
        #: the chunks since the last restart
        self.chunks: list[bytes] = []
        #: when each of them came (monotonic)
        self.times: list[float] = []
        #: how many chunks each restart made void
        self.voided: list[int] = []
        self._result: FlightResult | None = None
        self._error: BaseException | None = None
        #: when the end came (monotonic)
        self.ended_at = 0.0
        self._pause_s = pause_s
        self._greenlet = gevent.spawn(self._listen, flights, key, call, options)

    @property
    def listens(self) -> bool:
        """Whether there is neither answer nor error yet."""
        return not self._greenlet.dead

    def leave(self) -> None:
        """Go away."""
        self._greenlet.kill()

    def heard(self, chunks: int, within_s: float = 5.0) -> None:
        """Wait until so many chunks have come."""
        wait_until(lambda: len(self.chunks) >= chunks, within_s)

    def result(self, within_s: float = 10.0) -> FlightResult:
        """The answer; an error is raised."""
        self._await(within_s)
        if self._error is not None:
            raise self._error
        assert self._result is not None, "the listener left"
        return self._result

    def error(self, within_s: float = 10.0) -> FlightSvcError:
        """The error; an answer is an assertion error."""
        self._await(within_s)
        assert isinstance(self._error, FlightSvcError), (self._error, self._result)
        return self._error

    def _await(self, within_s: float) -> None:
        self._greenlet.join(within_s)
        assert self._greenlet.dead, f"no end within {within_s} s, after {len(self.chunks)} chunks"

    def _listen(self, flights: SingleFlight, key: FlightKey, call: Any, options: Any) -> None:
        try:
            with flights.stream(key, call, **options) as stream:
                while self._result is None:
                    self._take(stream.next())
        except Exception as error:
            self._error = error
        self.ended_at = time.monotonic()

    def _take(self, news: Chunk | Restart | End | None) -> None:
        if isinstance(news, Chunk):
            self.chunks.append(news.data)
            self.times.append(time.monotonic())
            gevent.sleep(self._pause_s)
        elif isinstance(news, Restart):
            self.voided.append(len(self.chunks))
            self.chunks, self.times = [], []
        elif isinstance(news, End):
            self._result = news.result


def listen(
    flights: SingleFlight, call: Any, listeners: int = 1, **options: Any
) -> list[Listener]:
    """Several listeners at once."""
    return [Listener(flights, KEY, call, **options) for _ in range(listeners)]


def followed(flights: SingleFlight, times: int = 1) -> None:
    """Wait until this worker follows another's owner."""
    wait_until(lambda: count(flights, "flight.actions.chat.follower_wait") >= times, 5)


def two_workers(
    one: SingleFlight, two: SingleFlight, talker: Talker, chunks: int = 0
) -> list[Listener]:
    """A listener at the owner and one elsewhere, who have heard so many chunks."""
    listeners = listen(one, talker)
    talker.began.wait()
    listeners += listen(two, talker)
    followed(two)
    talker.let_go(chunks)
    for listener in listeners:
        listener.heard(chunks)
    return listeners
