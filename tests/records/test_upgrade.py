"""The tables come to be, whoever begins, and however many at once."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent
import pytest
from alembic.autogenerate import compare_metadata
from alembic.command import upgrade as upgrade_to
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from flightsvc import cli
from flightsvc.errors import RecordsError
from flightsvc.records import open_database
from flightsvc.records.database import Database
from flightsvc.records.migrations import REVISIONS
from flightsvc.records.tables import METADATA, VERSION_TABLE
from flightsvc.records.upgrade import ADVISORY_LOCK, current, upgrade
from flightsvc.settings import Settings
from tests.processes import run_python, wait_until
from tests.records.conftest import Open
from tests.records.samples import PROGRAM, row
from tests.support.postgres import PostgresServer

FOLDER = Path(__file__).parents[2] / "flightsvc" / "records" / "migrations"


@pytest.fixture
def database(url: str) -> Any:
    found = open_database(Settings(database_url=url, database_timeout_ms=10_000))
    yield found
    found.close()


def differences(connection: Connection) -> list[Any]:
    """What the steps made otherwise than the tables say."""

    def ours(name: str | None, kind: str, *_: object) -> bool:
        return kind != "table" or str(name).startswith("flightsvc_")

    options = {"version_table": VERSION_TABLE, "include_name": ours, "compare_type": True}
    context = MigrationContext.configure(connection, opts=options)
    return list(compare_metadata(context, METADATA))


def test_the_steps_are_one_line() -> None:
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    script = ScriptDirectory.from_config(config)
    steps = [step.revision for step in script.walk_revisions()]
    assert tuple(reversed(steps)) == REVISIONS


def test_from_nothing_to_the_newest(database: Database) -> None:
    assert current(database).found == ""
    before, after = upgrade(database)
    assert (before.found, after.found) == ("", REVISIONS[-1])
    assert upgrade(database) == (after, after)
    assert current(database) == after
    assert database.read(differences) == []


def test_step_by_step_is_the_same(database: Database) -> None:
    for revision in REVISIONS:

        def one_step(connection: Connection, to: str = revision) -> None:
            config = Config()
            config.set_main_option("script_location", str(FOLDER))
            config.attributes["connection"] = connection
            upgrade_to(config, to)

        database.write(one_step)
        assert current(database).found == revision
    assert current(database).is_current
    assert database.read(differences) == []


def test_a_step_that_fails_leaves_nothing(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(FOLDER, tmp_path / "migrations")
    step = next(copy.glob("versions/r0001*"))
    step.write_text(step.read_text() + '\n    op.execute("SELECT nonsense FROM nowhere")\n')
    monkeypatch.setattr("flightsvc.records.upgrade.__file__", str(tmp_path / "upgrade.py"))
    with pytest.raises(RecordsError) as failed:
        upgrade(database)
    assert failed.value.kind == "refused"
    assert current(database).found == ""
    monkeypatch.undo()
    assert upgrade(database)[1].is_current


UPGRADES = f"""{PROGRAM}
say("ready")
input()
records = opened(sys.argv[1])
say(records.write(row(sys.argv[2])))
"""


def lock(url: str, server: PostgresServer | None) -> Callable[[], None]:
    """Hold the lock of an upgrade; what lets go of it."""
    if server is None:
        file = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("BEGIN IMMEDIATE")
        return file.close
    connection = server.connect(url.partition("@/")[2].partition("?")[0])
    connection.execute("SELECT pg_advisory_lock(%s)", (ADVISORY_LOCK,))
    return connection.close


def test_processes_that_start_together_upgrade_once(
    url: str, database: Database, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue("postgres") if url.startswith("postgresql") else None
    let_go = lock(url, server)
    starting = [run_python(UPGRADES, url, str(number)) for number in range(3)]
    for process in starting:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in starting:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    gevent.sleep(0.5)  # all of them have found no table, and wait for the lock
    assert [process.poll() for process in starting] == [None] * 3
    assert current(database).found == ""
    let_go()
    said = [process.communicate(timeout=60)[0] for process in starting]
    assert said == ["written\n"] * 3

    versions = database.read(
        lambda c: c.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).all()
    )
    assert [tuple(version) for version in versions] == [(REVISIONS[-1],)]


def test_only_who_upgraded_says_so(
    url: str,
    database: Database,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The command, which waited while a worker did it."""
    caplog.set_level("INFO", "flightsvc.records")
    server = request.getfixturevalue("postgres") if url.startswith("postgresql") else None
    let_go = lock(url, server)
    monkeypatch.setenv("FLIGHTSVC_DATABASE_URL", url)
    worker = gevent.spawn(upgrade, database)
    gevent.sleep(0.3)
    command = gevent.spawn(cli.main, ["db", "upgrade"])
    gevent.sleep(0.3)
    let_go()
    before, after = worker.get()
    assert (before.found, after.found) == ("", REVISIONS[-1])
    assert command.get() == 0
    assert "is up to date" in capsys.readouterr().out
    assert caplog.text.count("is upgraded to") == 1


DIES = f"""{PROGRAM}
from flightsvc.records import open_database, upgrade
def half(connection):
    upgrade._upgrade(connection)
    say("half")
    input()
open_database(Settings(database_url=sys.argv[1])).write(half, timeout_s=600)
"""


def test_a_process_that_is_killed_amid_its_upgrade_leaves_nothing(
    url: str, database: Database
) -> None:
    killed = run_python(DIES, url)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "half\n"
    killed.kill()
    killed.wait()
    wait_until(lambda: current(database).found == "")
    assert upgrade(database)[1].is_current
    assert database.read(differences) == []


def test_a_database_of_a_newer_version_is_used_as_it_is(
    opened: Open, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """While machines are upgraded one by one, old workers may start again."""
    first = opened(url)
    first._database.write(
        lambda c: c.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    )
    again = opened(url)
    assert "newer flightsvc" in caplog.text
    assert again.write(row()) == "written"
    assert not current(again._database).is_known


def test_the_tables_of_a_host_are_left_alone(database: Database) -> None:
    """And its own Alembic is not taken for ours."""
    host = ("CREATE TABLE alembic_version (version_num text)", "CREATE TABLE records (id int)")
    for statement in (*host, "INSERT INTO alembic_version VALUES ('host')"):
        database.write(lambda c, said=statement: c.execute(text(said)))  # type: ignore[misc]
    assert upgrade(database)[1].is_current
    host_version = database.read(
        lambda c: c.scalar(text("SELECT version_num FROM alembic_version"))
    )
    assert host_version == "host"


def test_without_preparing_the_first_use_upgrades(opened: Open, tmp_path: Path) -> None:
    records = opened(f"sqlite:///{tmp_path}/rows", prepare=False)
    assert not (tmp_path / "rows").exists()
    callers = [gevent.spawn(records.write, row(str(number))) for number in range(20)]
    assert [caller.get() for caller in callers] == ["written"] * 20


def test_the_command_upgrades(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLIGHTSVC_DATABASE_URL", url)
    said = []
    for action in ("current", "upgrade", "upgrade", "current"):
        assert cli.main(["db", action]) == 0
        said.append(capsys.readouterr().out)
    assert "is at nothing; `flightsvc db upgrade` brings it to" in said[0]
    assert f"upgraded from nothing to {REVISIONS[-1]}" in said[1]
    assert f"is up to date: {REVISIONS[-1]}" in said[2]
    assert said[3].rstrip().endswith(f"is at {REVISIONS[-1]}.")
    assert "s3cr3t" not in "".join(said)


def test_looking_makes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLIGHTSVC_DATA_DIR", str(tmp_path / "data"))
    assert cli.main(["db", "current"]) == 0
    assert "is at nothing" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_that_nothing_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLIGHTSVC_DATABASE_URL", "postgresql://u:s3cr3t@127.0.0.1:1/d")
    assert cli.main(["db", "upgrade"]) == 1
    said = capsys.readouterr().err
    assert "out of reach (Connection refused)" in said
    assert "s3cr3t" not in said
