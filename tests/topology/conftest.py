"""Servers that belong together, which a test may kill, freeze, reshape and lock up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.store import Store, open_store
from tests.flight.conftest import kind_of_redis, redis_server, worker
from tests.support import topology
from tests.support.redis_cluster import RedisClusterServers
from tests.support.redis_sentinel import RedisSentinels

__all__ = ["kind_of_redis", "redis_server", "worker"]

Servers = RedisSentinels | RedisClusterServers


def servers_of(kind: str, program: str) -> Servers:
    """Servers of a kind, not started; of a program: ``debian`` or ``embedded``."""
    found = topology.debian_redis() if program == "debian" else topology.embedded()
    return RedisSentinels(found) if kind == topology.SENTINEL else RedisClusterServers(found)


@pytest.fixture(params=[topology.SENTINEL, topology.CLUSTER])
def own_servers(request: pytest.FixtureRequest) -> Iterator[Servers]:
    """Sentinels and their servers, or a cluster, for one test."""
    with servers_of(request.param, "debian") as servers:
        yield servers


@pytest.fixture
def own_sentinels() -> Iterator[RedisSentinels]:
    """Sentinels and their servers, for one test."""
    with RedisSentinels(topology.debian_redis()) as servers:
        yield servers


@pytest.fixture
def own_cluster() -> Iterator[RedisClusterServers]:
    """A cluster, for one test."""
    with RedisClusterServers(topology.debian_redis()) as servers:
        yield servers


@pytest.fixture
def store() -> Iterator[Callable[..., Store]]:
    """Makes stores: ``store(url, redis_timeout_ms=…)``; patient ones if not told otherwise."""
    made: list[Store] = []

    def make(url: str, **settings: Any) -> Store:
        given = {"redis_timeout_ms": 2_000, **settings}
        made.append(open_store(Settings.checked(redis_url=url, **given), Metrics.off()))
        return made[-1]

    yield make
    for one in made:
        one.close()
