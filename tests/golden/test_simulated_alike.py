"""`checklist simulate` says of a failure what a caller gets: a request of each code, both ways."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from flightsvc.checklist.report import summary
from flightsvc.checklist.simulate import simulate
from flightsvc.checklist.trace import read_trace
from tests.golden.scene import SMALL, Scene
from tests.golden.table import ROWS
from tests.golden.telling import CHECKLIST, Make

SMALLER_MS = 5


def got(scene: Scene) -> tuple[int, int, str, str]:
    """Calls of either model, how it ended, and what the client was told was done instead."""
    reply = scene.ask(answer="x" * 3_000)
    ended = "failed" if reply.status_code >= 400 else "fallback"
    return (*scene.attempts(), ended, reply.headers.get("Flight-Fallback", ""))


def simulated(scene: Scene, code: str, *, smaller_ms: int | None) -> tuple[int, int, str, str]:
    again = {"latency_ms": 1, "code": code}
    line = {"at_ms": 0, "stage": "evaluation", **again, "attempts": [again, again]}
    trace = read_trace([json.dumps(line)], "trace")
    (seen,) = simulate(trace, CHECKLIST, scene.settings, smaller_ms=smaller_ms)
    return seen.calls, seen.smaller, seen.ended, seen.action


@pytest.mark.parametrize("code", [*ROWS, "AI_INPUT_EMPTY"])
def test_each_code(make: Make, code: str) -> None:
    scene = make()
    assert scene.ask().status_code == 200  # there is an older answer, as the simulation takes it
    scene.model.script([{"name": "small", "match": {"model": SMALL}}])
    scene.supply(code)
    assert simulated(scene, code, smaller_ms=SMALLER_MS) == got(scene)


@pytest.mark.parametrize("code", ["PROVIDER_UNAVAILABLE", "PROVIDER_QUOTA_EXHAUSTED"])
def test_without_a_smaller_model(make: Callable[..., Scene], code: str) -> None:
    scene = make(openai_small_model="")
    scene.supply(code)
    assert simulated(scene, code, smaller_ms=None) == got(scene)


def test_who_is_passed_to_a_person_is_not_answered(make: Make) -> None:
    trace = read_trace(['{"at_ms": 0, "latency_ms": 1, "code": "AI_PAYMENT_FAILED"}'], "trace")
    told = summary(simulate(trace, CHECKLIST, make().settings, smaller_ms=SMALLER_MS))
    total = told["codes"]["total"]
    assert (total["answered"], total["fallback"], total["failed"]) == (0, 0, 1)
    assert told["beside_errors"] == {"manual_review": 1}
