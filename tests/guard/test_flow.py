from __future__ import annotations

import random
from collections import Counter
from time import monotonic

import gevent
import pytest

from flightsvc.errors import (
    FlightSvcError,
    ProviderRejected,
    ProviderUnavailable,
    RetryExhausted,
)
from flightsvc.guard.health import HealthLimits
from flightsvc.metrics import Metrics

from .build import STAGE, TARGET, idle, make_guard
from .line_model import DOWN, OK


def test_h33_ten_calls_at_once_run_side_by_side(model):
    server = model(then=(0.2, "200"))
    guard = make_guard()
    started = monotonic()
    calls = [gevent.spawn(guard.call, server.ask) for _ in range(10)]
    gevent.joinall(calls, raise_error=True)
    took_s = monotonic() - started
    assert server.most_open == 10
    assert took_s <= 0.6
    assert server.calls == 10


def test_h36_ten_failing_calls_make_thirty_attempts(model):
    server = model(then=DOWN)
    guard = make_guard(breaker_failures=1_000, limits=HealthLimits(error_rate=1.0))
    calls = [gevent.spawn(guard.call, server.ask) for _ in range(10)]
    gevent.joinall(calls)
    assert all(isinstance(call.exception, RetryExhausted) for call in calls)
    assert server.calls == 30


def test_on_admitted_comes_once_and_before_the_first_attempt(model):
    server = model(DOWN, DOWN, OK)
    seen: list[int] = []
    guard = make_guard()
    guard.call(server.ask, on_admitted=lambda: seen.append(server.calls))
    assert seen == [0]
    assert server.calls == 3


@pytest.mark.parametrize("exc", [ProviderUnavailable(), ValueError("lost the flight")])
def test_what_on_admitted_raises_ends_the_call(exc):
    guard = make_guard()
    times: list[int] = []
    calls: list[float] = []

    def refuse():
        times.append(1)
        raise exc

    with pytest.raises(type(exc)) as raised:
        guard.call(calls.append, on_admitted=refuse)
    assert raised.value is exc
    assert (len(times), len(calls)) == (1, 0)
    assert idle(guard)


def test_a_kill_during_on_admitted_gives_the_place_back():
    guard = make_guard(concurrency=1, queue=0)
    call = gevent.spawn(guard.call, lambda _: None, on_admitted=lambda: gevent.sleep(60))
    while not guard.bulkhead(STAGE).in_use():
        gevent.sleep(0)
    call.kill()
    assert guard.call(lambda _: "ok") == "ok"


def test_the_gauges_show_places_queue_and_breaker():
    metrics = Metrics.off()
    guard = make_guard(metrics, concurrency=1, retry_delays_ms=(), breaker_failures=1)
    guard.call(lambda _: "ok")
    with guard.bulkhead(STAGE).place(0):
        queued = gevent.spawn(guard.call, lambda _: "ok")
        while not guard.bulkhead(STAGE).queued():
            gevent.sleep(0)
        values = metrics.snapshot()
        assert values[f"guard.bulkhead.{STAGE}"] == 1
        assert values[f"guard.queue.{STAGE}"] == 1
        assert values["guard.breaker.simulated.small"] == 0
    queued.get()

    def attempt(_timeout_s):
        raise ProviderUnavailable

    with pytest.raises(ProviderUnavailable):
        guard.call(attempt)
    assert metrics.snapshot()["guard.breaker.simulated.small"] == 2


class RandomEnds:
    """Calls that end in every way there is, in an order fixed by a seed."""

    KINDS = ("ok", "busy", "down", "rejected", "bug", "own timeout", "too slow", "admission")

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.metrics = Metrics.off()
        self.guard = make_guard(
            self.metrics, concurrency=8, queue=8, timeout_ms=120, budget_ms=1_000,
            breaker_failures=6, breaker_reset_s=0.05,
        )  # fmt: skip
        self.attempts = 0
        self.ends: Counter[str] = Counter()

    def one(self) -> None:
        kind = self._random.choice(self.KINDS)
        pause_s = self._random.random() * 0.02
        try:
            self.guard.call(
                lambda _: self._attempt(kind, pause_s),
                on_admitted=lambda: self._admit(kind),
            )  # fmt: skip
            self.ends["ok"] += 1
        except FlightSvcError as exc:
            self.ends[exc.code] += 1
        except ValueError:
            self.ends["bug"] += 1
        except BaseException as exc:
            self.ends["left"] += 1
            if not isinstance(exc, gevent.Timeout):
                raise

    def _admit(self, kind: str) -> None:
        if kind == "admission":
            gevent.sleep(0)
            raise ValueError

    def _attempt(self, kind: str, pause_s: float) -> None:
        self.attempts += 1
        gevent.sleep(60 if kind == "too slow" else pause_s)
        if kind == "down":
            raise ProviderUnavailable
        if kind == "rejected":
            raise ProviderRejected
        if kind == "bug":
            raise ValueError
        if kind == "own timeout":
            raise gevent.Timeout

    def run(self, calls: int) -> None:
        started = []
        for _ in range(calls):
            started.append(gevent.spawn(self.one))
            if self._random.random() < 0.7:
                gevent.sleep(self._random.random() * 0.004)
            if self._random.random() < 0.3:  # some before they began, some queued, some running
                self._random.choice(started[-12:]).kill(block=False)
        gevent.joinall(started)


def test_no_place_is_lost_in_a_thousand_random_ends():
    run = RandomEnds(seed=20_240_615)
    run.run(1_000)

    assert idle(run.guard)
    assert {"ok", "bug", "left", "OVERLOAD", "PROVIDER_REJECTED", "CIRCUIT_OPEN"} <= set(run.ends)
    counted = run.metrics.snapshot()
    attempts = [value for name, value in counted.items() if name.startswith("guard.attempts.")]
    assert sum(attempts) == run.attempts
    _all_places_still_work(run)


def _all_places_still_work(run: RandomEnds) -> None:
    """The breaker lets a probe through again, and then eight run side by side."""
    while run.guard.breaker(TARGET).state != "closed":
        try:
            run.guard.call(lambda _: None)
        except FlightSvcError as exc:
            gevent.sleep(exc.retry_after_s or 0)
    inside = 0
    most = 0

    def attempt(_timeout_s: float) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        gevent.sleep(0.02)
        inside -= 1

    gevent.joinall(
        [gevent.spawn(run.guard.call, attempt) for _ in range(16)],
        raise_error=True,
    )
    assert most == 8


def test_every_try_is_counted_once(model):
    server = model(DOWN, OK, then=DOWN)
    metrics = Metrics.off()
    guard = make_guard(metrics, breaker_failures=4)
    calls = 6
    for _ in range(calls):
        try:
            guard.call(server.ask)
        except FlightSvcError:
            continue
    sums: Counter[str] = Counter()
    for name, value in metrics.snapshot().items():
        sums[name.split(".")[1]] += int(value)
    assert calls + sums["retries"] == sums["attempts"] + sums["rejected"]
    assert sums["attempts"] == server.calls
