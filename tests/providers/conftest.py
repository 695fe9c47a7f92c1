"""A real model server, and the provider under test pointed at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flightsvc.metrics import Metrics
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.providers import Message, ModelRequest, Provider, make_provider
from flightsvc.settings import Settings
from tests.providers.failing import KEY, PROMPT, SECRET

STAGES = ("evaluation", "follow_up", "extraction", "demeanor")


@pytest.fixture(scope="session")
def server_process() -> Iterator[ModelServerProcess]:
    with ModelServerProcess() as server:
        yield server


@pytest.fixture
def server(server_process: ModelServerProcess) -> ModelServerProcess:
    server_process.reset()
    return server_process


@pytest.fixture
def metrics() -> Metrics:
    return Metrics.off()


@pytest.fixture
def make(server: ModelServerProcess, metrics: Metrics) -> Iterator[Callable[..., Provider]]:
    """Makes providers that ask the server; settings may be added or replaced."""
    made: list[Provider] = []

    def build(**changes: Any) -> Provider:
        given: dict[str, Any] = {
            "provider": "openai",
            "openai_base_url": server.base_url,
            "openai_model": "test-model",
            "openai_api_key": SECRET,
        }
        made.append(make_provider(Settings(**{**given, **changes}), metrics))
        return made[-1]

    yield build
    for provider in made:
        provider.close()


@pytest.fixture
def xingchen(server: ModelServerProcess, make: Callable[..., Provider]) -> Callable[..., Provider]:
    """Makes providers that run the server's workflows; settings may be added or replaced."""

    def build(**changes: Any) -> Provider:
        given: dict[str, Any] = {
            "provider": "xingchen",
            "openai_base_url": "",
            "xingchen_base_url": server.xingchen_url,
            "xingchen_api_key": KEY,
            "xingchen_api_secret": SECRET,
            "stages": {stage: {"flow_id": f"{stage}-flow"} for stage in STAGES},
        }
        return make(**{**given, **changes})

    return build


@pytest.fixture
def provider(make: Callable[..., Provider]) -> Provider:
    return make()


@pytest.fixture
def ask() -> Callable[..., ModelRequest]:
    """Makes requests with one user message; fields may be added or replaced."""

    def build(text: str = PROMPT, **changes: Any) -> ModelRequest:
        given: dict[str, Any] = {"messages": (Message("user", text),), "stage": "evaluation"}
        return ModelRequest(**{**given, **changes})

    return build
