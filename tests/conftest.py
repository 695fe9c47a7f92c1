"""gevent's patch comes before everything else, as it does in a worker."""

from gevent import monkey

monkey.patch_all()

import os
from collections.abc import Iterator
from typing import Any

import gevent
import pytest
from hypothesis import settings as hypothesis_settings

from tests.support import topology
from tests.support.redis_cluster import RedisClusterServers
from tests.support.redis_sentinel import RedisSentinels
from tests.support.redis_server import RedisServer

if "PYTEST_XDIST_WORKER" in os.environ:

    def _idle() -> None:
        # xdist's own threads are not gevent's: without a timer the hub thinks it waits for ever
        while True:
            gevent.sleep(0.5)

    gevent.spawn(_idle)


# no test asserts a time, the searches neither
hypothesis_settings.register_profile("tests", deadline=None)
hypothesis_settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--topology",
        action="append",
        choices=(*topology.TOPOLOGIES, "each"),
        help="run flights on this kind of Redis; can be repeated (see tests/support/topology.py)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", topology.MARKER)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A server for all tests of this process that do not harm it; give each a namespace."""
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="session")
def redis_sentinels() -> Iterator[RedisSentinels]:
    """Sentinels, their master and its replicas, not to be harmed."""
    with RedisSentinels(topology.debian_redis()) as servers:
        yield servers


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[RedisClusterServers]:
    """A cluster, not to be harmed."""
    with RedisClusterServers(topology.debian_redis()) as servers:
        yield servers


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A server that the test may freeze, fill, flush or kill."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def namespace() -> str:
    """A namespace that no other test uses."""
    return "t-" + os.urandom(6).hex()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Where everything must be there, a test that skips has failed."""
    report = yield
    if report.skipped and os.environ.get("FLIGHTSVC_TEST_STRICT") == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped, and FLIGHTSVC_TEST_STRICT=1: {call.excinfo}"
    return report
