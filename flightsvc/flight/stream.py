"""What a caller that streams holds: a place in its flight's chunks, and the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, NamedTuple, NoReturn, Self

from flightsvc.errors import WaitTimeout
from flightsvc.flight.buffer import Cursor
from flightsvc.flight.local import LocalFlight, Reading
from flightsvc.flight.result import FlightResult, is_replay, result_of
from flightsvc.flight.state import Role
from flightsvc.flight.tally import Caller


class Chunk(NamedTuple):
    """One chunk, as the call emitted it."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Restart:
    """A new call begins from the start: all chunks given so far are void."""


class End(NamedTuple):
    """The flight's answer. The chunks given since the last restart are all of it, or none is."""

    result: FlightResult


RESTART: Final = Restart()


class Joined(NamedTuple):
    """A flight that a caller reads, and whether it started it."""

    reading: Reading
    first: bool


class FlightStream:
    """The chunks of one flight, for one caller; use it in a ``with`` block.

    Reading is pulling: a caller that is slow, or stops, holds nobody up. It may be used by one
    greenlet at a time.

    :param join: replays the answer, or joins the flight.
    :param leave: called with what was joined when the caller goes.
    :param deadline: when the caller's patience ends (monotonic).
    :param replay: whether the answer of an earlier flight is welcome.
    """

    def __init__(
        self,
        join: Callable[[], FlightResult | Joined],
        leave: Callable[[Reading], None],
        caller: Caller,
        *,
        flight_id: str,
        deadline: float,
        replay: bool,
    ) -> None:
        self.flight_id = flight_id
        #: the answer, once :class:`End` was given
        self.result: FlightResult | None = None
        self._join = join
        self._leave = leave
        self._caller = caller
        self._deadline = deadline
        self._replay = replay
        self._error: BaseException | None = None
        self._closed = False
        self._joined: Joined | None = None
        self._begin()

    @property
    def role(self) -> str:
        """What this caller is to the flight, as far as is known: see :class:`FlightResult`."""
        if self.result is not None:
            return self.result.role
        run = self._joined.reading.flight.run if self._joined else None
        if run is None:
            return str(Role.FOLLOWER.value)
        if run.own is None:
            return str(Role.LOCAL.value)
        return str((Role.OWNER if self._joined and self._joined.first else Role.FOLLOWER).value)

    @property
    def fence(self) -> int:
        """The number of the ownership whose chunks are read; 0 where it is not known, or none."""
        if self.result is not None:
            return self.result.fence
        if self._joined is None:
            return 0
        flight = self._joined.reading.flight
        own = flight.run.own if flight.run is not None else None
        return own.fence if own is not None else flight.buffer.fence

    def next(self, timeout_s: float | None = None) -> Chunk | Restart | End | None:
        """What comes next; None if nothing came in time.

        :param timeout_s: longest wait in seconds; 0: do not wait; None: to the caller's deadline.
        :raises CallFailed: the one call failed; all chunks before that were given.
        :raises WaitTimeout: the caller's deadline passed; the call goes on.
        :raises FlightSvcError: others, as :meth:`SingleFlight.run` raises them.
        """
        limit = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while True:
            news = self._read()
            if news is not None:
                return news
            now = time.monotonic()
            if now >= self._deadline:
                self._fail(WaitTimeout(retry_after_s=1))
            if now >= limit:
                return None
            if self._joined is not None:
                reading = self._joined.reading
                reading.flight.buffer.wait(reading.clock, min(limit, self._deadline))

    def close(self) -> None:
        """This caller leaves; what it has not read it does not need. Further calls do nothing."""
        if not self._closed:
            self._over()
            self._caller.left()

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

    def _begin(self) -> None:
        try:
            joined = self._join()
        except BaseException as error:
            self._fail(error)
        if isinstance(joined, FlightResult):
            self._answered(joined)
        else:
            self._joined = joined
            self._cursor = Cursor(joined.reading.flight.buffer)

    def _read(self) -> Chunk | Restart | End | None:
        """The next news that is there already."""
        while self._joined is not None:
            if self._cursor.voided():
                return RESTART
            chunk = self._cursor.take()
            if chunk is not None:
                return Chunk(chunk)
            flight = self._joined.reading.flight
            if flight.end is None:
                return None
            self._end(flight)
        if self._error is not None:
            raise self._error
        if self.result is None:
            raise RuntimeError("this stream is closed")
        return End(self.result)

    def _end(self, flight: LocalFlight) -> None:
        """The flight has ended; or it was a replay that this caller does not want: join anew."""
        end, joined = flight.end, self._joined
        if end is None or joined is None:
            return
        if not self._replay and is_replay(end):
            self._let_go()
            self._begin()
            return
        try:
            result = result_of(flight.key, end, joined.first)
        except Exception as error:
            self._fail(error)
        self._answered(result, flight)

    def _answered(self, result: FlightResult, flight: LocalFlight | None = None) -> None:
        self.result = self._caller.answered(result, flight)
        self._over()

    def _fail(self, error: BaseException) -> NoReturn:
        self._error = error
        self._over()
        self._caller.failed(error)
        raise error

    def _over(self) -> None:
        self._closed = True
        self._let_go()

    def _let_go(self) -> None:
        joined, self._joined = self._joined, None
        if joined is not None:
            self._leave(joined.reading)
