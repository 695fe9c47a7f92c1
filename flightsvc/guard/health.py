"""The look before a retry (second article, 5.2): on a system that is overloaded already, a retry
costs more than it brings."""

from __future__ import annotations

from dataclasses import dataclass

from flightsvc.guard.windows import Window

#: recent attempts are those of so many seconds
RECENT_S = 10.0
#: fewer recent attempts than this say nothing about the rate
FEWEST = 20


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """How things stand as a retry is considered.

    :param bulkhead_use: share of the stage's places that are taken.
    :param breaker: state of the target's breaker.
    :param error_rate: share of the target's recent attempts that failed.
    :param input_length: of the question, in characters.
    """

    bulkhead_use: float
    breaker: str
    error_rate: float
    input_length: int


@dataclass(frozen=True, slots=True)
class HealthLimits:
    """Above these there is no retry; the fallback follows at once."""

    bulkhead_use: float = 0.9
    error_rate: float = 0.5
    input_length: int = 100_000

    def exceeded(self, seen: HealthSnapshot) -> str:
        """The first limit that is exceeded, by name; empty if none is."""
        if seen.breaker != "closed":
            return "breaker"
        if seen.bulkhead_use > self.bulkhead_use:
            return "bulkhead"
        if seen.error_rate > self.error_rate:
            return "error_rate"
        return "input_length" if seen.input_length > self.input_length else ""


class Recent:
    """The recent attempts on one target."""

    def __init__(self) -> None:
        self._all = Window(RECENT_S)
        self._failed = Window(RECENT_S)

    def add(self, *, failed: bool) -> None:
        """An attempt ended."""
        self._all.add()
        if failed:
            self._failed.add()

    def error_rate(self) -> float:
        """Share of failures; 0 as long as too few attempts are known."""
        attempts = self._all.total()
        return self._failed.total() / attempts if attempts >= FEWEST else 0.0
