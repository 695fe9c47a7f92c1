from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.golden.scene import Scene
from tests.support.redis_server import RedisServer


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServerProcess]:
    with ModelServerProcess() as model:
        yield model


@pytest.fixture
def make(
    redis_server: RedisServer, namespace: str, model_server: ModelServerProcess
) -> Iterator[Callable[..., Scene]]:
    """``make()``, ``make(openai_small_model="", …)``: a worker of this test's own."""
    model_server.reset()
    made: list[Scene] = []

    def scene(**settings: Any) -> Scene:
        given = {"url": redis_server.url, **settings}
        made.append(Scene(redis_server.client(), namespace, model=model_server, **given))
        return made[-1]

    yield scene
    for each in made:
        each.close()
