"""Workers in one process: each SingleFlight is one worker to Redis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flightsvc.flight import SingleFlight
from tests.support import topology
from tests.support.redis_node import Topology
from tests.support.redis_server import RedisServer

Worker = Callable[..., SingleFlight]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if topology.is_spread(metafunc):
        metafunc.parametrize("kind_of_redis", topology.chosen(metafunc.config))


@pytest.fixture
def kind_of_redis() -> str:
    """What the test runs against; see :mod:`tests.support.topology`."""
    return topology.SINGLE


@pytest.fixture
def redis_server(
    kind_of_redis: str, redis_server: RedisServer, request: pytest.FixtureRequest
) -> Any:
    """One server, or servers that belong together; see the session's ``redis_server``."""
    if kind_of_redis == topology.SINGLE:
        return redis_server
    return request.getfixturevalue(topology.FIXTURES[kind_of_redis])


@pytest.fixture
def worker(redis_server: RedisServer, namespace: str) -> Iterator[Worker]:
    """Makes workers of one cluster: ``worker(heartbeat_ms=…, stages={…}, url=…)``."""
    made: list[SingleFlight] = []
    # servers that share the machine with a test may be slow without being frozen
    patient = {"redis_timeout_ms": 1_000} if isinstance(redis_server, Topology) else {}

    def make(url: str = "", **settings: Any) -> SingleFlight:
        given = {"namespace": namespace, **({} if url else patient), **settings}
        flights = SingleFlight.from_url(url or redis_server.url, **given)
        made.append(flights)
        return flights

    yield make
    for flights in made:
        flights.close()


def counts(flights: SingleFlight) -> dict[str, float]:
    """What a worker has counted so far, by metric name."""
    return flights.metrics.snapshot()
