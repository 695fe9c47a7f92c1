"""A coordinator and a call that write down what they do; nothing of the product knows of it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import gevent

from flightsvc.errors import FlightSvcError, ProviderRejected, ProviderUnavailable
from flightsvc.flight import FlightContext, FlightKey, SingleFlight
from flightsvc.flight.coordinator import (
    Ask,
    FlightCoordinator,
    Following,
    Outcome,
    Ownership,
    Refused,
    Replayed,
)
from flightsvc.flight.serializer import Envelope, ResultSerializer
from flightsvc.flight.state import Ack, Failure
from flightsvc.store import StoreError
from tests.proof.history import Journal

T = TypeVar("T")
_reader = ResultSerializer(4 * 1024 * 1024)


class LoggedCoordinator(FlightCoordinator):
    """Writes down every question and every write of an owner, with its answer."""

    journal: Journal

    def acquire_or_join(self, ask: Ask) -> Outcome:
        about: dict[str, str | float] = {
            "flight": ask.key.flight_id,
            "token": ask.token,
            "waited": ask.waited_fence,
        }
        since = time.monotonic()
        try:
            outcome = super().acquire_or_join(ask)
        except StoreError as error:
            self.journal.write("acquire", since=since, got=f"? {error.kind}", **about)
            raise
        fence = getattr(outcome, "fence", 0)
        self.journal.write("acquire", since=since, got=_action(outcome), fence=fence, **about)
        return outcome

    def mark_running(self, own: Ownership) -> Ack:
        return self._heard("mark_running", own, lambda: FlightCoordinator.mark_running(self, own))

    def beat(self, shard: int, owned: Sequence[Ownership]) -> list[tuple[Ack, int]]:
        sent = [(own, own.fence) for own in owned]
        answers = super().beat(shard, owned)
        for (own, fence), (ack, _) in zip(sent, answers, strict=True):
            if ack is not Ack.OK:
                self._write("beat", own, fence, got=ack.value)
        return answers

    def finish(self, own: Ownership, envelope: Envelope) -> Ack:
        value = str(_reader.unpack(envelope.blob).thaw())

        def finish() -> Ack:
            return FlightCoordinator.finish(self, own, envelope)

        return self._ended("finish", own, finish, value)

    def fail(self, own: Ownership, failure: Failure, fallback: bytes = b"") -> Ack:
        def fail() -> Ack:
            return FlightCoordinator.fail(self, own, failure, fallback)

        return self._ended("fail", own, fail, failure.code)

    def release(self, own: Ownership) -> Ack:
        return self._ended("release", own, lambda: FlightCoordinator.release(self, own))

    def _heard(self, what: str, own: Ownership, send: Callable[[], Ack]) -> Ack:
        fence = own.fence
        ack = send()
        if ack is not Ack.OK:
            self._write(what, own, fence, got=ack.value)
        return ack

    def _ended(self, what: str, own: Ownership, send: Callable[[], Ack], value: str = "") -> Ack:
        since, fence = time.monotonic(), own.fence
        self._write(what, own, fence, got="sent", value=value)
        try:
            ack = send()
        except StoreError as error:
            self._write(what, own, fence, got=f"? {error.kind}", value=value, since=since)
            raise
        self._write(what, own, fence, got=ack.value, value=value, since=since)
        return ack

    def _write(self, what: str, own: Ownership, fence: int, **about: str | float) -> None:
        flight = own.key.flight_id
        self.journal.write(what, flight=flight, token=own.token, fence=fence, **about)


def _action(outcome: Outcome) -> str:
    if isinstance(outcome, Ownership):
        return outcome.action.value
    names = {Following: "FOLLOWER_WAIT", Replayed: "REPLAY_SUCCESS", Refused: "REPLAY_FAILURE"}
    return names.get(type(outcome), type(outcome).__name__.upper())


def log_all(flights: SingleFlight, journal: Journal) -> None:
    """From now on this worker's coordinator writes down what it does."""
    distributed: Any = flights._distributed
    distributed.coordinator.__class__ = LoggedCoordinator
    distributed.coordinator.journal = journal


class LoggedModel:
    """A model of moods: slow, failing, or fine; each call writes down its beginning and end.

    :param moody: whether it fails at times.
    """

    def __init__(self, journal: Journal, name: str, rng: random.Random, *, moody: bool) -> None:
        self._journal = journal
        self._name = name
        self._rng = rng
        self._moody = moody
        self._calls = 0

    def __call__(self, ctx: FlightContext) -> str:
        self._calls += 1
        name = f"{self._name}#{self._calls}"
        about: dict[str, str | float] = {
            "flight": ctx.flight_id,
            "token": ctx._run.flight.token,
            "name": name,
        }
        self._journal.write("call", fence=ctx.fence, **about)
        got, value = "stopped", ""
        try:
            gevent.sleep(self._rng.choice([0.01, 0.05, 0.1, 0.3, 0.9]))
            value = self._answer(name)
            got = "returned"
        except FlightSvcError as error:
            got, value = "raised", error.code
            raise
        finally:
            self._journal.write("called", fence=ctx.fence, got=got, value=value, **about)
        return value

    def _answer(self, name: str) -> str:
        luck = self._rng.random()
        if self._moody and luck < 0.15:
            raise ProviderUnavailable(code="MODEL_DOWN", retry_after_s=self._rng.choice([0, 0.3]))
        if self._moody and luck < 0.2:
            raise ProviderRejected(code="MODEL_REFUSES")
        return f"the answer of {name}"


class LoggedCaller:
    """Somebody who asks once.

    :param name: unique in the history.
    """

    def __init__(self, journal: Journal, name: str) -> None:
        self._journal = journal
        self._name = name

    def ask(
        self,
        flights: SingleFlight,
        key: FlightKey,
        model: LoggedModel,
        deadline_s: float,
        **options: Any,
    ) -> None:
        """Ask, and write down the end, whatever it is."""
        about: dict[str, str | float] = {"flight": key.flight_id, "name": self._name}
        deadline = time.monotonic() + deadline_s
        self._journal.write("ask", deadline=deadline, **about)
        got, fence, value = "error UNANSWERED", 0, ""
        try:
            result = flights.run(key, model, deadline_s=deadline_s, **options)
            got, fence, value = result.role, result.fence, str(result.value)
        except FlightSvcError as error:
            got = f"error {error.code}"
            fence = getattr(error, "fence", 0)
        except Exception as error:
            got = f"error {type(error).__name__}"
        self._journal.write("answer", got=got, fence=fence, value=value, **about)
