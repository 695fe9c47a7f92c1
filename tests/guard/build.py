"""A guard with short times, and what tests ask about it."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from flightsvc.checklist import load_checklist
from flightsvc.errors import CircuitOpen, ProviderUnavailable
from flightsvc.guard import AiCallGuard, Route, Routes, SharedGuardState, Target
from flightsvc.guard.health import HealthLimits
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings

STAGE = "evaluation"
TARGET = Target("simulated", "small")


CHECKLIST = load_checklist(Settings())


class PlainGuard(AiCallGuard):
    """A guard that is given one attempt instead of routes."""

    def call(self, attempt, target=TARGET, **more):
        return self.execute(STAGE, Routes(Route(target, attempt)), **more)


def make_guard(
    metrics: Metrics | None = None,
    shared: SharedGuardState | None = None,
    breaker_failures: int = 5,
    breaker_reset_s: float = 30,
    retry_budget: tuple[float, int] = (0.2, 1_000),
    limits: HealthLimits | None = None,
    **stage: Any,
) -> PlainGuard:
    """A guard whose stage ``evaluation`` has the given settings over the defaults.

    :param retry_budget: share and least number of retries; by default they never run out.
    """
    settings = Settings(
        breaker_failures=breaker_failures,
        breaker_reset_s=breaker_reset_s,
        retry_budget_ratio=retry_budget[0],
        retry_budget_min=retry_budget[1],
        stages={STAGE: stage},  # type: ignore[dict-item]
    )
    metrics = metrics or Metrics.off()
    return PlainGuard(settings, metrics, CHECKLIST, shared=shared, limits=limits)


def idle(guard: AiCallGuard) -> bool:
    """Whether no place is taken and nobody queues."""
    places = guard.bulkhead(STAGE)
    return (places.in_use(), places.queued()) == (0, 0)


def fail(guard: PlainGuard, times: int, exc: BaseException | None = None) -> None:
    error = exc or ProviderUnavailable()

    def attempt(_timeout_s):
        raise error

    for _ in range(times):
        with pytest.raises(type(error)):
            guard.call(attempt)


def state(guard: AiCallGuard) -> str:
    return guard.breaker(TARGET).state


def refused(guard: PlainGuard) -> float:
    """The breaker refuses a call; the seconds that it says to wait."""
    with pytest.raises(CircuitOpen) as raised:
        guard.call(lambda _: pytest.fail("an attempt was made"))
    assert raised.value.retry_after_s is not None
    return raised.value.retry_after_s


def opened(reset_s: float = 0.1, **more) -> PlainGuard:
    """A guard whose breaker has opened, its reset time passed."""
    guard = make_guard(breaker_reset_s=reset_s, retry_delays_ms=(), **more)
    fail(guard, 5)
    gevent.sleep(refused(guard))
    return guard
