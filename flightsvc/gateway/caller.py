"""One caller of a chat: its own view of the flight that it shares."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple, Self

from flightsvc.errors import FlightInterrupted, FlightSvcError, ProviderRejected
from flightsvc.flight.result import FlightResult
from flightsvc.flight.stream import Chunk, End, FlightStream, Restart
from flightsvc.gateway.aftermath import REFUSED
from flightsvc.gateway.attempt import USAGE, tagged
from flightsvc.gateway.chunks import play
from flightsvc.gateway.continuation import Continuation
from flightsvc.gateway.heard import Place

#: Stands in each chunk of a caller that gets token counts at the end.
_NO_USAGE = b',"usage":null}'


#: Bytes after which what was found is given first; a late joiner gets much at once.
MOST_BYTES = 16 * 1024


class Piece(NamedTuple):
    """What a caller gets next: the JSON of chunks; ``last``: nothing follows."""

    chunks: list[bytes]
    last: bool = False


class ChatCaller:
    """Reads one chat's flight as this caller wants it; use it in a ``with`` block.

    A caller is a place in what all callers share. It holds text of its own only after an owner
    has died in the middle of its answer.

    :param place: remembers what it was given.
    :param wants_chunks: else it wants the whole answer.
    :param include_usage: whether it wants token counts at the end.
    :param failed: told of an error that this caller gets.
    """

    def __init__(
        self,
        stream: FlightStream,
        place: Place,
        *,
        wants_chunks: bool,
        include_usage: bool,
        failed: Callable[[FlightSvcError], None] = lambda _error: None,
    ) -> None:
        self._stream = stream
        self._place = place
        #: whether it wants chunks
        self.wants_chunks = wants_chunks
        self._include_usage = include_usage
        self._failed = failed
        self._continuation: Continuation | None = None
        #: chunks since the answer last began
        self._fresh = 0
        self._role, self._fence = "", 0

    @property
    def flight_id(self) -> str:
        """The flight."""
        return self._stream.flight_id

    @property
    def role(self) -> str:
        """How this caller comes by its answer."""
        return self._role

    @property
    def fence(self) -> int:
        """The ownership that it comes from."""
        return self._fence

    def next(self, timeout_s: float) -> Piece | None:
        """What comes next, as much of it as is there; None if nothing came in time.

        :param timeout_s: longest wait, in seconds.
        :raises FlightInterrupted: a new owner answers in other words than this caller has.
        :raises FlightSvcError: the flight ended with it.
        """
        with self._telling_of_failures():
            return self._next(timeout_s)

    def answer(self, timeout_s: float) -> bytes | None:
        """The whole answer as JSON, for a caller that wants no chunks; None if it did not come in
        time.

        :param timeout_s: as of :meth:`next`, which raises the same.
        """
        with self._telling_of_failures():
            news = self._stream.next(timeout_s)
            while isinstance(news, (Chunk, Restart)):
                news = self._stream.next(0)
            if news is None:
                return None
            return self._result(news.result).json_bytes

    def close(self) -> None:
        """This caller leaves."""
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- inside ----------------------------------------------------------------------------------

    @contextmanager
    def _telling_of_failures(self) -> Iterator[None]:
        try:
            yield
        except FlightSvcError as error:
            error.flight_id = error.flight_id or self.flight_id
            self._failed(error)
            raise

    def _next(self, timeout_s: float) -> Piece | None:
        found: list[bytes] = []
        size = 0
        news = self._stream.next(timeout_s)
        if news is None:
            return None
        while news is not None:
            if isinstance(news, End):
                found += self._rest(news)
                return Piece(found, last=True)
            if isinstance(news, Restart):
                self._begin_anew()
            else:
                if not self._role:  # now: a stream that has ended does not say
                    self._role, self._fence = self._stream.role, self._stream.fence
                self._fresh += 1
                found += self._shown(news.data)
                size += len(news.data)
            if size > MOST_BYTES:
                break
            try:
                news = self._stream.next(0)
            except FlightSvcError:
                if not found:
                    raise
                break  # raised again by the next call; what came before it is given first
        return Piece(found)

    def _begin_anew(self) -> None:
        self._fresh = 0
        if self._continuation is not None:  # twice in one answer: too much to be followed
            raise FlightInterrupted(retry_after_s=1)
        if self._place.count:
            self._continuation = Continuation(self._place.chunks)

    def _rest(self, end: End) -> Iterator[bytes]:
        """What the end adds: all, where it is an answer from before."""
        result = self._result(end.result)
        if not self._fresh:
            for chunk in play(result.value):
                yield from self._shown(tagged(chunk))
        if self._continuation is not None:
            self._continuation.end()

    def _result(self, result: FlightResult) -> FlightResult:
        self._role, self._fence = result.role, result.fence
        if result.fallback == REFUSED:
            raise _refusal(result)
        return result

    def _shown(self, chunk: bytes) -> list[bytes]:
        """A chunk as this caller gets it, if it does."""
        going_on = self._continuation
        if chunk.startswith(USAGE):
            chunk = chunk[len(USAGE) :]
            if going_on is not None:
                chunk = going_on.headed(json.loads(chunk))
            counts, self._include_usage = self._include_usage, False  # they come last, and once
            return [chunk] if counts else []
        if going_on is not None:
            rest = going_on.take(chunk)
            if rest is None:
                return []
            chunk = rest
        else:
            self._place.given(chunk)
        return [chunk[:-1] + _NO_USAGE] if self._include_usage else [chunk]


def _refusal(result: FlightResult) -> ProviderRejected:
    """What the model's service said of the request."""
    told: dict[str, Any] = result.value
    error = ProviderRejected("The model refuses the request.", upstream_status=told["status"])
    error.status, error.upstream_error = told["status"], told["error"]
    error.flight_id = result.flight_id
    return error
