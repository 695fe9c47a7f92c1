"""What workers share: each ``SharedState`` here is that of one worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.store import open_store
from flightsvc.store.base import Store
from flightsvc.store.shared import SharedState
from tests.protocol.conftest import SINGLE
from tests.support.redis_server import RedisServer


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # those that take the protocol's servers run against each program
    if "program" in metafunc.fixturenames:
        metafunc.parametrize("program", SINGLE, indirect=True, scope="session")


class Workers(Protocol):
    """Makes workers of one namespace."""

    def __call__(self, url: str = "", **options: Any) -> SharedState: ...


@pytest.fixture
def workers(redis_server: RedisServer, namespace: str) -> Iterator[Workers]:
    """``workers()``, ``workers(url, trips=…)``: started, and closed in the end."""
    made: list[tuple[SharedState, Store]] = []

    def make(url: str = "", *, start: bool = True, **options: Any) -> SharedState:
        settings = Settings.checked(redis_url=url or redis_server.url, namespace=namespace)
        metrics = options.pop("metrics", None) or Metrics.off()
        store = open_store(settings, metrics)
        shared = SharedState(settings, metrics, store, worker=f"w{len(made)}", **options)
        made.append((shared, store))
        if start:
            shared.start()
        return shared

    yield make
    for shared, store in made:
        shared.close()
        store.close()
