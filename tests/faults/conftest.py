"""The servers of the tests in this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flightsvc.model_server.process import ModelServerProcess


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServerProcess]:
    with ModelServerProcess() as model:
        yield model


@pytest.fixture
def model(model_server: ModelServerProcess) -> ModelServerProcess:
    """A model that has been asked nothing yet."""
    model_server.reset()
    return model_server
