"""Counts that add up: callers = answers + errors + left, stage by stage."""

from __future__ import annotations

import time
from types import TracebackType

from flightsvc.errors import FlightSvcError
from flightsvc.flight.key import FlightKey
from flightsvc.flight.local import LocalFlight
from flightsvc.flight.result import FlightResult
from flightsvc.metrics import (
    FLIGHT_ANSWERS,
    FLIGHT_CALLERS,
    FLIGHT_ERRORS,
    FLIGHT_LATENESS,
    FLIGHT_LEFT,
    Metrics,
)


class Caller:
    """One caller, counted once when it comes and once when it goes."""

    __slots__ = ("_flight_id", "_metrics", "_stage")

    def __init__(self, metrics: Metrics, key: FlightKey) -> None:
        self._metrics = metrics
        self._stage = key.stage
        self._flight_id = key.flight_id

    def __enter__(self) -> Caller:
        self._metrics.count(FLIGHT_CALLERS, stage=self._stage)
        return self

    def answered(self, result: FlightResult, flight: LocalFlight | None = None) -> FlightResult:
        """The caller has its answer; from a flight, also say how late it came."""
        self._metrics.count(FLIGHT_ANSWERS, stage=self._stage, role=result.role)
        if flight is not None and result.role != "replay":
            late_s = time.monotonic() - flight.ended_at
            self._metrics.time(FLIGHT_LATENESS, late_s, stage=self._stage, role=result.role)
        return result

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, FlightSvcError):
            error.flight_id = self._flight_id
            self._metrics.count(FLIGHT_ERRORS, stage=self._stage, code=error.code)
        elif error is not None:
            self._metrics.count(FLIGHT_LEFT, stage=self._stage)


class Tally:
    """Counts callers and how they were answered."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def caller(self, key: FlightKey) -> Caller:
        """A caller with a question; use it in a ``with`` block."""
        return Caller(self._metrics, key)
