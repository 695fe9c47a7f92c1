"""A guard with short times, and what tests ask about it."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from flightsvc.errors import CircuitOpen, ProviderUnavailable
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


def fail(guard: AiCallGuard, times: int, exc: BaseException | None = None) -> None:
    error = exc or ProviderUnavailable()

    def attempt(_timeout_s):
        raise error

    for _ in range(times):
        with pytest.raises(type(error)):
            guard.execute(STAGE, TARGET, attempt)


def state(guard: AiCallGuard) -> str:
    return guard.breaker(TARGET).state


def refused(guard: AiCallGuard) -> float:
    """The breaker refuses a call; the seconds that it says to wait."""
    with pytest.raises(CircuitOpen) as raised:
        guard.execute(STAGE, TARGET, lambda _: pytest.fail("an attempt was made"))
    assert raised.value.retry_after_s is not None
    return raised.value.retry_after_s


def opened(reset_s: float = 0.1, **more) -> AiCallGuard:
    """A guard whose breaker has opened, its reset time passed."""
    guard = make_guard(breaker_reset_s=reset_s, retry_delays_ms=(), **more)
    fail(guard, 5)
    gevent.sleep(refused(guard))
    return guard
