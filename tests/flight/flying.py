"""What the tests of flights share: a model under control, callers, and waiting for a state."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import gevent
from gevent.event import Event

from flightsvc.flight import FlightContext, FlightKey, FlightResult, SingleFlight
from tests.flight.conftest import counts
from tests.processes import wait_until

#: A cluster that notices a silent owner after half a second.
QUICK: dict[str, Any] = {"heartbeat_ms": 100, "takeover_detect_ms": 500}
#: Heartbeats as frequent, and no owner is taken over for being silent, however slow the machine.
STEADY: dict[str, Any] = {"heartbeat_ms": 100, "takeover_detect_ms": 6_000}


class Model:
    """A model that counts its calls, and answers ``{"call": <number>}`` if not told otherwise.

    :param takes_s: how long a call takes.
    :param held: each call waits for :meth:`let_go` first.
    :param value: what it answers instead.
    :param error: what it raises instead.
    """

    def __init__(
        self,
        takes_s: float = 0.0,
        *,
        held: bool = False,
        value: Any = None,
        error: BaseException | None = None,
    ) -> None:
        self.takes_s = takes_s
        self.value = value
        self.error = error
        #: fence of each call, in the order they began
        self.fences: list[int] = []
        #: calls that came to their end
        self.ended = 0
        #: set when a call has begun
        self.began = Event()
        #: when the last call ended (monotonic)
        self.ended_at = 0.0
        self._go = Event()
        if not held:
            self._go.set()

    @property
    def calls(self) -> int:
        """How many calls were made."""
        return len(self.fences)

    def let_go(self) -> None:
        """Let held calls answer."""
        self._go.set()

    def __call__(self, ctx: FlightContext) -> Any:
        self.fences.append(ctx.fence)
        number = self.calls
        self.began.set()
        self._go.wait()
        gevent.sleep(self.takes_s)
        self.ended += 1
        self.ended_at = time.monotonic()
        if self.error is not None:
            raise self.error
        return {"call": number} if self.value is None else self.value


class Caller:
    """Somebody who asks, in a greenlet of his own."""

    def __init__(
        self,
        flights: SingleFlight,
        key: FlightKey,
        call: Callable[[FlightContext], Any],
        **options: Any,
    ) -> None:
        self._answer: FlightResult | None = None
        self._error: BaseException | None = None
        self._began_at = time.monotonic()
        #: when the answer or error came (monotonic)
        self.answered_at = 0.0
        self._greenlet = gevent.spawn(self._ask, flights, key, call, options)

    @property
    def took_s(self) -> float:
        """From asking to the answer."""
        return self.answered_at - self._began_at

    @property
    def waits(self) -> bool:
        """Whether there is neither answer nor error yet."""
        return not self._greenlet.dead

    @property
    def answered(self) -> bool:
        """Whether there is an answer."""
        return self._answer is not None

    @property
    def left(self) -> bool:
        """Whether the caller went away without an answer or error."""
        return not self.waits and not self.answered and self._error is None

    def leave(self) -> None:
        """Go away without an answer."""
        self._greenlet.kill()

    def result(self, within_s: float = 5.0) -> FlightResult:
        """The answer; an error is raised."""
        self._await(within_s)
        if self._error is not None:
            raise self._error
        assert self._answer is not None, "the caller left"
        return self._answer

    def error(self, within_s: float = 5.0) -> BaseException:
        """The error; an answer is an assertion error."""
        self._await(within_s)
        assert self._error is not None, f"answered with {self._answer!r}"
        return self._error

    def outcome(self, within_s: float = 5.0) -> BaseException | None:
        """The error, or None for an answer."""
        self._await(within_s)
        return self._error

    def _await(self, within_s: float) -> None:
        self._greenlet.join(within_s)
        assert self._greenlet.dead, f"no answer within {within_s} s"

    def _ask(self, flights: SingleFlight, key: FlightKey, call: Any, options: Any) -> None:
        try:
            self._answer = flights.run(key, call, **options)
        except Exception as error:
            self._error = error
        self.answered_at = time.monotonic()


def ask(
    flights: SingleFlight, key: FlightKey, call: Any, callers: int = 1, **options: Any
) -> list[Caller]:
    """Several callers at once."""
    return [Caller(flights, key, call, **options) for _ in range(callers)]


def values(callers: list[Caller], within_s: float = 5.0) -> list[Any]:
    """The different values among the callers' answers; all must have one."""
    texts = {json.dumps(caller.result(within_s).value) for caller in callers}
    return [json.loads(text) for text in sorted(texts)]


def roles(callers: list[Caller]) -> list[str]:
    """The callers' roles, sorted."""
    return sorted(caller.result().role for caller in callers)


def count(flights: SingleFlight, name: str) -> float:
    """One metric of a worker."""
    return counts(flights).get(name, 0)


def await_following(flights: SingleFlight, stage: str = "scoring", times: int = 1) -> None:
    """Wait until this worker was told to follow another's owner, so often."""
    wait_until(lambda: count(flights, f"flight.actions.{stage}.follower_wait") >= times, 5)
