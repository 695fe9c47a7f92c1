"""Workers in one process: each SingleFlight is one worker to Redis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flightsvc.flight import SingleFlight
from tests.support.redis_server import RedisServer

Worker = Callable[..., SingleFlight]


@pytest.fixture
def worker(redis_server: RedisServer, namespace: str) -> Iterator[Worker]:
    """Makes workers of one cluster: ``worker(heartbeat_ms=…, stages={…}, url=…)``."""
    made: list[SingleFlight] = []

    def make(url: str = "", **settings: Any) -> SingleFlight:
        given = {"namespace": namespace, **settings}
        flights = SingleFlight.from_url(url or redis_server.url, **given)
        made.append(flights)
        return flights

    yield make
    for flights in made:
        flights.close()


def counts(flights: SingleFlight) -> dict[str, float]:
    """What a worker has counted so far, by metric name."""
    return flights.metrics.snapshot()
