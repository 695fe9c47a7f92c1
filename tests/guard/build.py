"""A guard with short times, and what tests ask about it."""

from __future__ import annotations

from typing import Any

from flightsvc.guard import AiCallGuard, Target
from flightsvc.guard.breaker import ProbeLease
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings

STAGE = "evaluation"
TARGET = Target("simulated", "small")


def make_guard(
    metrics: Metrics | None = None,
    lease: ProbeLease | None = None,
    breaker_failures: int = 5,
    breaker_reset_s: float = 30,
    **stage: Any,
) -> AiCallGuard:
    """A guard whose stage ``evaluation`` has the given settings over the defaults."""
    settings = Settings(
        breaker_failures=breaker_failures,
        breaker_reset_s=breaker_reset_s,
        stages={STAGE: stage},  # type: ignore[dict-item]
    )
    return AiCallGuard(settings, metrics or Metrics.off(), probe_lease=lease)


def idle(guard: AiCallGuard) -> bool:
    """Whether no place is taken and nobody queues."""
    places = guard.bulkhead(STAGE)
    return (places.in_use(), places.queued()) == (0, 0)
