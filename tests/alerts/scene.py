"""Alerts of the tests: codes, policies and what is sent where."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import gevent

from flightsvc.alerts import Alert, Sample
from flightsvc.checklist.model import AlertPolicy, Code, FallbackPolicy
from flightsvc.errors import FailureType

SECRET = "s3cr3t-value"


def policy(**values: Any) -> AlertPolicy:
    given: dict[str, Any] = {
        "name": "timeouts",
        "channels": ("webhook", "log"),
        "severity": "P2",
        "window_s": 60,
        "count": 3,
        **values,
    }
    return AlertPolicy(**given)


def code(alert: AlertPolicy | None, name: str = "AI_INFRA_TIMEOUT") -> Code:
    return Code(
        name=name,
        level="L1",
        cause="infrastructure",
        failure_type=FailureType.TIMEOUT,
        retryable=True,
        retry=None,
        fallback=FallbackPolicy("nothing", "none"),
        message_zh="请稍候",
        message_en="Please wait.",
        state=None,
        alert=alert,
        trips_after=0,
        pauses=False,
        status=504,
        about_zh="模型超时",
        about_en="The model took too long.",
    )


def alert(**values: Any) -> Alert:
    broken = policy(**values)
    sample = Sample(stage="evaluation", trace_id="ab" * 16, flight_id="cd" * 16)
    return Alert(
        code=code(broken), policy=broken, count=12, rate=None, sample=sample, service="shop"
    )


def until(true: Callable[[], object], within_s: float = 10.0) -> None:
    """Let others run until it is true."""
    limit = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < limit, f"not so within {within_s} s"
        gevent.sleep(0.01)


class Recorder:
    """A channel that takes everything, or fails as it is told."""

    def __init__(self, name: str = "webhook", failures: Iterable[BaseException] = ()) -> None:
        self.name = name
        self.sent: list[Alert] = []
        self.tries = 0
        self._failures = list(failures)

    def send(self, alert: Alert, timeout_s: float) -> None:
        self.tries += 1
        if self._failures:
            raise self._failures.pop(0)
        self.sent.append(alert)
