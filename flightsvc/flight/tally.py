"""Counts that add up: callers = answers + errors + left, stage by stage."""

from __future__ import annotations

import time
from types import TracebackType

from flightsvc.errors import FlightSvcError
from flightsvc.flight.key import FlightKey
from flightsvc.flight.local import LocalFlight
from flightsvc.flight.result import FlightResult
from flightsvc.flight.state import Role
from flightsvc.metrics import (
    FLIGHT_ANSWERS,
    FLIGHT_CALLERS,
    FLIGHT_ERRORS,
    FLIGHT_LATENESS,
    FLIGHT_LEFT,
    FLIGHT_SAVED,
    FLIGHT_SAVED_MONEY,
    FLIGHT_STAND_INS,
    Metrics,
)
from flightsvc.settings import Settings

#: roles of answers for which no call was made
SAVED = frozenset({Role.FOLLOWER.value, Role.REPLAY.value, Role.L1.value})


class Caller:
    """One caller, counted once when it comes and once when it goes."""

    __slots__ = ("_flight_id", "_stage")

    def __init__(self, stage: StageTally, flight_id: str) -> None:
        self._stage = stage
        self._flight_id = flight_id

    def __enter__(self) -> Caller:
        self._stage.callers.total += 1
        return self

    def answered(self, result: FlightResult, flight: LocalFlight | None = None) -> FlightResult:
        """The caller has its answer; from a flight, also say how late it came."""
        role, stage = result.role, self._stage
        stage.answers[role].total += 1
        if result.fallback is not None:
            stage.stood_in(result.fallback)
        elif role in SAVED:
            stage.saved.total += 1
            stage.saved_money.total += stage.price
        if flight is not None and role != "replay":
            stage.lateness[role].add(max(0.0, time.monotonic() - flight.ended_at))
        return result

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.failed(error)

    def failed(self, error: BaseException) -> None:
        """The caller gets an error, or goes away."""
        if isinstance(error, FlightSvcError):
            error.flight_id = self._flight_id
            self._stage.error(error.code)
        else:
            self._stage.left()

    def left(self) -> None:
        """The caller goes away."""
        self._stage.left()


class StageTally:
    """The counters of one stage, at hand: ten thousand callers may be answered in one moment."""

    def __init__(self, metrics: Metrics, stage: str, price: int) -> None:
        self._metrics = metrics
        self._stage = stage
        #: of one call, in millionths
        self.price = price
        self.callers = metrics.counter(FLIGHT_CALLERS, stage=stage)
        roles = [role.value for role in Role]
        self.answers = {r: metrics.counter(FLIGHT_ANSWERS, stage=stage, role=r) for r in roles}
        self.lateness = {r: metrics.timer(FLIGHT_LATENESS, stage=stage, role=r) for r in roles}
        self.saved = metrics.counter(FLIGHT_SAVED, stage=stage)
        self.saved_money = metrics.counter(FLIGHT_SAVED_MONEY, stage=stage)

    def stood_in(self, action: str) -> None:
        """A caller got something in place of the model's answer."""
        self._metrics.count(FLIGHT_STAND_INS, stage=self._stage, action=action)

    def error(self, code: str) -> None:
        """A caller got an error."""
        self._metrics.count(FLIGHT_ERRORS, stage=self._stage, code=code)

    def left(self) -> None:
        """A caller went away."""
        self._metrics.count(FLIGHT_LEFT, stage=self._stage)


class Tally:
    """Counts callers and how they were answered."""

    def __init__(self, metrics: Metrics, settings: Settings) -> None:
        self._metrics = metrics
        self._settings = settings
        self._stages: dict[str, StageTally] = {}

    def caller(self, key: FlightKey) -> Caller:
        """A caller with a question; use it in a ``with`` block."""
        stage = self._stages.get(key.stage)
        if stage is None:
            price = self._settings.stage(key.stage).price_millionths
            stage = self._stages[key.stage] = StageTally(self._metrics, key.stage, price)
        return Caller(stage, key.flight_id)
