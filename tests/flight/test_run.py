"""What callers see: one call, shared answers, shared failures."""

from __future__ import annotations

import gevent
import pytest

from flightsvc.errors import CallFailed
from flightsvc.flight import FlightContext, FlightKey
from tests.flight.conftest import Worker, counts

KEY = FlightKey("scoring", "s1", "3", "an answer")


def test_many_callers_of_two_workers_make_one_call(worker: Worker) -> None:
    one, two = worker(), worker()
    fences: list[int] = []

    def call(ctx: FlightContext) -> dict[str, int]:
        fences.append(ctx.fence)
        gevent.sleep(0.2)
        return {"score": 80}

    flying = [gevent.spawn((one, two)[n % 2].run, KEY, call) for n in range(40)]
    gevent.joinall(flying, raise_error=True)

    results = [greenlet.get() for greenlet in flying]
    assert len(fences) == 1
    assert {result.fence for result in results} == set(fences)
    assert sorted({result.role for result in results}) == ["follower", "owner"]
    assert [result.role for result in results].count("owner") == 1
    assert all(result.value == {"score": 80} for result in results)


def test_a_failure_reaches_everybody_and_the_key_is_free_again(worker: Worker) -> None:
    one, two = worker(), worker()
    calls: list[int] = []

    def broken(ctx: FlightContext) -> None:
        calls.append(ctx.attempt)
        gevent.sleep(0.1)
        raise ValueError("no")

    flying = [gevent.spawn((one, two)[n % 2].run, KEY, broken) for n in range(6)]
    gevent.joinall(flying)

    assert len(calls) == 1
    assert all(isinstance(greenlet.exception, CallFailed) for greenlet in flying)
    assert two.run(KEY, lambda ctx: ctx.attempt).value == 2


def test_counts_add_up(worker: Worker) -> None:
    one = worker()
    with pytest.raises(CallFailed):
        one.run(FlightKey("scoring", "broken"), lambda ctx: 1 / 0)
    for _ in range(3):
        one.run(KEY, lambda ctx: 1)
    left = gevent.spawn(one.run, FlightKey("scoring", "left"), lambda ctx: gevent.sleep(0.3))
    gevent.sleep(0.05)
    left.kill()
    got = counts(one)

    def total(start: str) -> float:
        return sum(value for name, value in got.items() if name.startswith(start + ".scoring."))

    assert got["flight.callers.scoring"] == 5
    assert total("flight.answers") == 3
    assert total("flight.errors") == 1
    assert got["flight.left.scoring"] == 1
