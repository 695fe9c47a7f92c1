"""Every test here runs against the embedded Valkey and against Debian's redis-server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.flight.conftest import worker
from tests.protocol.desk import Desk
from tests.support.redis_server import RedisServer

__all__ = ["worker"]

MISSING = "Debian package redis-server is missing"


@pytest.fixture(scope="session", params=["embedded", "redis-server"])
def program(request: pytest.FixtureRequest) -> str | None:
    """The server's binary; None for the embedded one."""
    if request.param == "embedded":
        return None
    found = shutil.which("redis-server")
    if found is None:
        if os.environ.get("FLIGHTSVC_TEST_STRICT") == "1":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    return found


@pytest.fixture(scope="session")
def redis_server(program: str | None) -> Iterator[RedisServer]:
    """A server for all tests of this folder that leave it as it was; it evicts nothing."""
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
