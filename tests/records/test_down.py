"""A database that is slow, busy, frozen or gone: callers are told soon, and others go on."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import gevent
import pytest
from sqlalchemy import Connection

from flightsvc.errors import RecordsError
from flightsvc.metrics import Metrics
from flightsvc.records import Records, database, tables
from tests.processes import wait_until
from tests.records.conftest import Open
from tests.records.samples import row
from tests.support.postgres import PostgresServer

ME = ("acme", "s-1")
#: what a caller may wait longer than the setting says, on a machine with much else to do, in s
SLACK_S = 2.0


class Ticks:
    """A greenlet that sees whether the hub is blocked."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.count = 0
        self._greenlet = gevent.spawn(self._run)

    def _run(self) -> None:
        last = time.monotonic()
        while True:
            gevent.sleep(0.005)
            now = time.monotonic()
            self.longest_s, last = max(self.longest_s, now - last), now
            self.count += 1

    def stop(self) -> None:
        self._greenlet.kill()


def failure(use: Callable[[], object]) -> tuple[RecordsError, float]:
    """The error of one use, and how long it took."""
    began = time.monotonic()
    with pytest.raises(RecordsError) as refused:
        use()
    return refused.value, time.monotonic() - began


def locked(path: Path) -> sqlite3.Connection:
    """Somebody else writes, and takes long."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


@pytest.fixture
def lite(opened: Open, tmp_path: Path) -> Records:
    return opened(f"sqlite:///{tmp_path}/rows", database_timeout_ms=1_000)


def test_a_locked_file_does_not_block_the_hub(lite: Records, tmp_path: Path) -> None:
    lite.write(row("there"))
    other, ticks = locked(tmp_path / "rows"), Ticks()
    writers = [gevent.spawn(lite.write, row(str(number))) for number in range(3)]
    gevent.sleep(0.3)
    assert len(lite.session(*ME).records) == 1  # reading does not wait
    assert not any(writer.ready() for writer in writers)
    other.execute("COMMIT")
    assert [writer.get() for writer in writers] == ["written"] * 3
    ticks.stop()
    assert ticks.count > 10
    assert ticks.longest_s < 0.25  # SQLite itself waited for longer than that


def test_a_file_that_stays_locked_is_busy(lite: Records, metrics: Metrics, tmp_path: Path) -> None:
    other = locked(tmp_path / "rows")
    writers = [gevent.spawn(failure, lambda: lite.write(row())) for _ in range(10)]
    ends = [writer.get() for writer in writers]
    assert {error.kind for error, _ in ends} == {"busy"}
    assert max(took_s for _, took_s in ends) < 1.0 + SLACK_S
    assert metrics.snapshot()["records.errors.busy"] == 10
    error = ends[0][0]
    assert (error.code, error.status, error.retryable) == ("RECORDS_UNAVAILABLE", 503, True)
    assert error.retry_after_s
    wait_until(lambda: lite.session(*ME) is not None)  # threads that wait still come free
    other.execute("COMMIT")
    assert lite.write(row()) == "written"


def test_a_slow_transaction_does_not_block_the_hub(lite: Records) -> None:
    """SQLite at work for seconds, not waiting."""
    slow = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000)
              SELECT count(*) FROM n"""
    lite._database.timeout_s = 30
    ticks = Ticks()
    assert lite._database.read(lambda c: c.exec_driver_sql(slow).scalar_one()) == 3_000_000
    ticks.stop()
    assert ticks.count > 10
    assert ticks.longest_s < 0.25


@pytest.fixture
def far(opened: Open, own_postgres: PostgresServer) -> Records:
    url = own_postgres.url(own_postgres.make_database())
    return opened(url, database_timeout_ms=800, database_pool_size=2)


def test_a_frozen_server_is_left_alone_after_the_first_wait(
    far: Records, own_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.write(row("1"))
    ticks = Ticks()
    own_postgres.freeze()
    together = [gevent.spawn(failure, lambda: far.write(row("2"))) for _ in range(6)]
    ends = [caller.get() for caller in together]
    # who waits for a connection is told that the others have it
    assert {error.kind for error, _ in ends} <= {"unreachable", "busy"}
    assert max(took_s for _, took_s in ends) < 0.8 + SLACK_S
    error, took_s = failure(lambda: far.write(row("2")))
    assert error.kind == "unreachable"
    assert took_s < 0.1  # an answer does not wait again for what is known to be away
    ticks.stop()
    assert ticks.longest_s < 0.25

    own_postgres.thaw()
    far._database._left_alone_until = time.monotonic()
    assert far.write(row("2")) == "written"
    assert far._database.connections_in_use == 0
    callers = [gevent.spawn(far.write, row(str(number))) for number in range(10)]
    assert [caller.get() for caller in callers] == ["written"] * 10


def test_one_caller_tries_while_the_others_are_told_at_once(
    far: Records, own_postgres: PostgresServer
) -> None:
    own_postgres.freeze()
    failure(lambda: far.write(row()))
    far._database._left_alone_until = time.monotonic()  # the pause is over
    callers = [gevent.spawn(failure, lambda: far.write(row())) for _ in range(5)]
    waited = sorted(caller.get()[1] for caller in callers)
    assert waited[-1] > 0.7
    assert waited[-2] < 0.5
    own_postgres.thaw()


def test_a_server_that_restarts_is_used_again(far: Records, own_postgres: PostgresServer) -> None:
    far.write(row("1"))
    own_postgres.stop()
    error, took_s = failure(lambda: far.write(row("2")))
    assert error.kind == "unreachable"
    assert took_s < 0.8 + SLACK_S
    own_postgres.start()
    far._database._left_alone_until = time.monotonic()
    assert far.write(row("2")) == "written"
    assert len(far.session(*ME).records) == 2


def test_a_connection_that_was_cut_is_replaced(far: Records, own_postgres: PostgresServer) -> None:
    far.write(row("1"))
    with own_postgres.connect() as server:
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'postgres' "
            "AND application_name = 'flightsvc'"
        )
    assert far.write(row("2")) == "written"


def test_a_caller_that_is_killed_just_ends(far: Records, own_postgres: PostgresServer) -> None:
    """What it asked for goes on, and gives its connection back."""
    own_postgres.freeze()
    callers = [gevent.spawn(far.write, row()) for _ in range(2)]
    gevent.sleep(0.1)
    gevent.killall(callers)
    assert all(isinstance(caller.get(), gevent.GreenletExit) for caller in callers)
    own_postgres.thaw()
    wait_until(lambda: far._database.connections_in_use == 0)
    assert far.write(row()) == "written"


def test_a_callers_own_timeout_is_its_own(far: Records, own_postgres: PostgresServer) -> None:
    own_postgres.freeze()
    with pytest.raises(gevent.Timeout) as ended, gevent.Timeout(0.1) as mine:
        far.write(row())
    assert ended.value is mine
    own_postgres.thaw()
    wait_until(lambda: far._database.connections_in_use == 0)
    assert far.write(row()) == "written"


def test_the_service_starts_without_its_database(
    opened: Open,
    own_postgres: PostgresServer,
    metrics: Metrics,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And uses it, tables and all, once it is there."""
    url = own_postgres.url(own_postgres.make_database())
    own_postgres.stop()
    records = opened(url, database_timeout_ms=800)
    assert "Answers are not kept for now" in caplog.text
    assert metrics.snapshot()["records.errors.unreachable"] == 1
    failure(lambda: records.write(row()))
    own_postgres.start()
    records._database._left_alone_until = time.monotonic()
    assert records.write(row()) == "written"


def test_a_pause_ends_by_itself(monkeypatch: pytest.MonkeyPatch, opened: Open) -> None:
    monkeypatch.setattr(database, "PAUSE_S", 0.2)
    records = opened("postgresql://u:p@127.0.0.1:1/d")
    told = failure(lambda: records.find(*ME, "evaluation", "1"))[0].inside
    assert "Connection refused" not in told  # it was not asked
    gevent.sleep(0.25)
    told = failure(lambda: records.find(*ME, "evaluation", "1"))[0].inside
    assert "Connection refused" in told


def test_a_host_without_an_address_is_out_of_reach(
    opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    opened("postgresql://u:s3cr3t@no-such-host.invalid/d")
    assert "out of reach (resolve host)" in caplog.text
    assert "s3cr3t" not in caplog.text


def test_a_read_only_server_refuses(far: Records, own_postgres: PostgresServer) -> None:
    """As a replica does."""
    with own_postgres.connect() as server:
        server.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        server.execute("SELECT pg_reload_conf()")
    own_postgres.stop()
    own_postgres.start()
    error, _ = failure(lambda: far.write(row()))
    assert (error.kind, "25006" in error.inside) == ("refused", True)
    assert not far.session(*ME)


def test_a_full_disk_is_a_refusal(lite: Records) -> None:
    big = row(value={"text": "x" * 3_000_000})

    def write_into_a_full_file(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count = 50")
        tables.write(connection, big, 1)

    error, _ = failure(lambda: lite._database.write(write_into_a_full_file))
    assert (error.kind, "SQLITE_FULL" in error.inside) == ("refused", True)
    assert "xxx" not in error.inside
    assert "SQLITE" not in str(error)
    assert not lite.session(*ME)
