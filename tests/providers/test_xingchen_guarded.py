"""XingChen behind the guard: its numbers retried or not, and held against its breaker or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flightsvc.checklist import load_checklist
from flightsvc.errors import CircuitOpen, FlightSvcError
from flightsvc.guard import AiCallGuard, Route, Routes, Target
from flightsvc.metrics import Metrics
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.providers import ModelFile, ModelRequest, Models, make_models
from flightsvc.settings import Settings
from tests.providers.failing import KEY, SECRET

PASSES = (20303, *range(20356, 20363), 20369, 20371, 20375, 20376, 20804, 20902, 20903)
STAYS = (460, 20201, 20202, 20204, 20363, 20364, 20372, 21102, 21103, 23601, 23602, 23603)
QUOTA_AND_AUTH = (20366, 20373, 20374, 20900, 20901)

Execute = Callable[..., str]


@pytest.fixture
def models(server: ModelServerProcess) -> Iterator[Models]:
    made = make_models(settings(server), Metrics.off())
    yield made
    made.close()


def settings(server: ModelServerProcess) -> Settings:
    stage: dict[str, Any] = {"flow_id": "f", "retry_delays_ms": (100, 100), "timeout_ms": 9_000}
    return Settings.checked(
        provider="xingchen",
        xingchen_base_url=server.xingchen_url,
        xingchen_api_key=KEY,
        xingchen_api_secret=SECRET,
        retry_budget_min=100,
        stages={"evaluation": stage, "extraction": {**stage, "flow_id": "e"}},
    )


@pytest.fixture
def execute(server: ModelServerProcess, models: Models) -> Execute:
    """Makes one guarded call; returns the code of its failure, empty for an answer."""
    guard = AiCallGuard(settings(server), Metrics.off(), load_checklist(Settings()))

    def once(request: ModelRequest) -> str:
        model = models.for_stage(request.stage)
        route = Route(Target(model.name, model.model), lambda s: model.complete(request, s))
        try:
            guard.execute(request.stage, Routes(route))
        except CircuitOpen:
            return "open"
        except FlightSvcError as error:
            return error.code
        return ""

    return once


@pytest.mark.parametrize("code", [*PASSES, *STAYS, *QUOTA_AND_AUTH])
def test_what_passes_is_tried_three_times_and_nothing_else_twice(
    server: ModelServerProcess, execute: Execute, ask: Callable[..., ModelRequest], code: int
) -> None:
    server.script([{"behave": {"code": code}}])
    assert execute(ask())
    assert server.stats()["calls"] == (3 if code in PASSES else 1)


@pytest.mark.parametrize("code", [*STAYS, *QUOTA_AND_AUTH])
def test_h35_refusals_do_not_open_the_breaker(
    server: ModelServerProcess, execute: Execute, ask: Callable[..., ModelRequest], code: int
) -> None:
    server.script([{"match": {"times": 8}, "behave": {"code": code}}])
    for _ in range(8):
        assert execute(ask()) != "open"
    assert execute(ask()) == ""
    assert server.stats()["calls"] == 9


@pytest.mark.parametrize("code", [20303, 20369, 20902])
def test_failures_open_the_breaker_of_that_workflow_alone(
    server: ModelServerProcess, execute: Execute, ask: Callable[..., ModelRequest], code: int
) -> None:
    server.script([{"match": {"model": "f"}, "behave": {"code": code}}])
    for _ in range(3):
        execute(ask())
    assert execute(ask()) == "open"
    assert execute(ask(stage="extraction")) == ""


def test_h36_a_retry_uploads_again_and_no_more(
    server: ModelServerProcess, execute: Execute, ask: Callable[..., ModelRequest]
) -> None:
    server.script([{"match": {"kind": "workflow", "times": 2}, "behave": {"code": 20369}}])
    file = ModelFile("resume.pdf", "application/pdf", b"%PDF-1.7")
    assert execute(ask(stage="extraction", file=file)) == ""
    stats = server.stats()
    assert (stats["uploads"], stats["calls"]) == (3, 3)
