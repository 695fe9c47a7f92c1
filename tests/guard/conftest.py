from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from .line_model import LineModel


@pytest.fixture
def model() -> Iterator[Callable[..., LineModel]]:
    """Starts scripted models; ends them after the test."""
    started: list[LineModel] = []

    def start(*args, **kwargs) -> LineModel:
        started.append(LineModel(*args, **kwargs))
        return started[-1]

    yield start
    for one in started:
        one.close()
