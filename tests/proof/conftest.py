"""Workers in this process, as in the tests of the flight; and what else the interleavings need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flightsvc.flight.coordinator import FlightCoordinator
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.store import Names, open_store
from tests.faults.proxy import Proxy
from tests.flight.conftest import worker
from tests.flight.flying import QUICK
from tests.proof.steps import KEY
from tests.support.redis_server import RedisServer

__all__ = ["worker"]


@pytest.fixture
def names(namespace: str) -> dict[str, str]:
    """The Redis names of the flight."""
    return Names(namespace, 16).flight(KEY.flight_id)


@pytest.fixture
def line(redis_server: RedisServer) -> Iterator[Proxy]:
    """A line to the server on which requests can be held."""
    with Proxy(redis_server, tcp=False) as proxy:
        yield proxy


@pytest.fixture
def owner(redis_server: RedisServer, namespace: str) -> Iterator[FlightCoordinator]:
    """Says to Redis what a worker would, step by step."""
    settings = Settings.checked(redis_url=redis_server.url, namespace=namespace, **QUICK)
    store = open_store(settings, Metrics.off())
    yield FlightCoordinator(store, Names(namespace, 16), settings, "an owner")
    store.close()
