"""Records on both kinds of database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flightsvc.metrics import Metrics
from flightsvc.records import Records, open_records
from flightsvc.settings import Settings
from tests.support.postgres import PostgresServer

Open = Callable[..., Records]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server for all tests of this process that do not harm it."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server that the test may freeze or stop."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/rows.sqlite3"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.url(server.make_database())


@pytest.fixture
def metrics() -> Metrics:
    return Metrics.off()


@pytest.fixture
def opened(metrics: Metrics) -> Iterator[Open]:
    """Opens records; they are closed after the test."""
    several: list[Records] = []

    def open_one(url: str = "", *, prepare: bool = True, **settings: object) -> Records:
        checked = Settings.checked(database_url=url, **settings)
        several.append(open_records(checked, metrics, prepare=prepare))
        return several[-1]

    yield open_one
    for each in several:
        each.close()


@pytest.fixture(scope="session")
def shared_database(postgres: PostgresServer) -> str:
    """One for all tests that only write rows."""
    return postgres.make_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def records(request: pytest.FixtureRequest, opened: Open, tmp_path: Path) -> Records:
    """Up to date, and empty."""
    if request.param == "sqlite":
        return opened(f"sqlite:///{tmp_path}/rows.sqlite3")
    server: PostgresServer = request.getfixturevalue("postgres")
    name: str = request.getfixturevalue("shared_database")
    ready = opened(server.url(name))
    with server.connect(name) as connection:
        for table in ("flightsvc_records", "flightsvc_forgotten"):
            connection.execute(f"DELETE FROM {table}")
    return ready
