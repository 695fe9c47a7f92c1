"""What the guard says of cost: each attempt at its price, and the retries that are left."""

from __future__ import annotations

import pytest

from flightsvc.errors import CircuitOpen, RetryExhausted
from flightsvc.metrics import Metrics

from .build import STAGE, TARGET, fail, make_guard
from .line_model import DOWN, OK


def test_every_attempt_costs_a_retry_too(model):
    metrics = Metrics.off()
    guard = make_guard(metrics, call_price=0.5)
    server = model(DOWN, OK)
    assert guard.call(server.ask) == "200"
    assert server.calls == 2
    assert metrics.snapshot()[f"guard.spent_money.{STAGE}"] == 1_000_000


def test_who_is_refused_costs_nothing(model):
    metrics = Metrics.off()
    guard = make_guard(metrics, call_price=0.5, breaker_failures=1, retry_delays_ms=())
    fail(guard, 1)
    spent = metrics.snapshot()[f"guard.spent_money.{STAGE}"]
    with pytest.raises(CircuitOpen):
        guard.call(model(then=OK).ask)
    assert metrics.snapshot()[f"guard.spent_money.{STAGE}"] == spent == 500_000


def test_the_retries_that_are_left_are_a_gauge(model):
    metrics = Metrics.off()
    guard = make_guard(metrics, retry_budget=(0.2, 5))
    name = f"guard.retry_budget.{TARGET.provider}.{TARGET.model}"
    with pytest.raises(RetryExhausted):
        guard.call(model(then=DOWN).ask)
    assert metrics.snapshot()[name] == 3
    assert guard.retry_budget(TARGET).left() == 3
