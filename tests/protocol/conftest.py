"""Every test here runs against the embedded Valkey and against Debian's redis-server.

Those that can run on Sentinels and on a cluster too, see :mod:`tests.support.topology`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.flight.conftest import worker
from tests.protocol.desk import Desk
from tests.support import topology
from tests.support.redis_server import RedisServer

__all__ = ["worker"]

SINGLE = ("embedded", "redis-server")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "program" not in metafunc.fixturenames:
        return
    programs = list(SINGLE)
    if topology.is_spread(metafunc):
        kinds = topology.chosen(metafunc.config)
        programs = programs if topology.SINGLE in kinds else []
        programs += [kind for kind in kinds if kind != topology.SINGLE]
    metafunc.parametrize("program", programs, indirect=True, scope="session")


@pytest.fixture(scope="session")
def program(request: pytest.FixtureRequest) -> str | None:
    """The server's binary, None for the embedded one; or a topology."""
    if request.param == "embedded":
        return None
    return topology.debian_redis() if request.param == "redis-server" else str(request.param)


@pytest.fixture(scope="session")
def redis_server(program: str | None, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A server for all tests of this folder that leave it as it was; it evicts nothing."""
    if program in topology.TOPOLOGIES:
        yield request.getfixturevalue(topology.FIXTURES[program])
        return
    with RedisServer("--maxmemory-policy", "noeviction", program=program) as server:
        yield server


@pytest.fixture
def own_redis(program: str | None) -> Iterator[RedisServer]:
    """A server that the test may flush."""
    with RedisServer(program=program) as server:
        yield server


@pytest.fixture
def desk(redis_server: RedisServer, namespace: str) -> Iterator[Desk]:
    """One flight, and all the scripts about it."""
    with Desk(redis_server, namespace) as one:
        yield one


@pytest.fixture
def own_desk(own_redis: RedisServer, namespace: str) -> Iterator[Desk]:
    """The same, on a server that the test may flush."""
    with Desk(own_redis, namespace) as one:
        yield one
