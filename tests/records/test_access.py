"""Databases that the settings name, but that let nobody in: the start is refused, in words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from flightsvc.errors import SettingsError
from flightsvc.settings import Settings, load_settings
from tests.records.conftest import Open
from tests.records.samples import row
from tests.support.postgres import PASSWORD, SUPERUSER, PostgresServer


def told(opened: Open, url: str) -> str:
    with pytest.raises(SettingsError) as refused:
        opened(url)
    message = str(refused.value)
    assert refused.value.__cause__ is None
    assert PASSWORD not in message
    assert "s3cr3t" not in message
    return message


def test_a_wrong_password(opened: Open, postgres: PostgresServer) -> None:
    message = told(opened, postgres.url("postgres", password="wrong s3cr3t"))
    assert message.startswith("FLIGHTSVC_DATABASE_URL: the PostgreSQL database postgres on ")
    assert "refuses the user or the password" in message


def test_no_such_database(opened: Open, postgres: PostgresServer) -> None:
    assert "has no such database" in told(opened, postgres.url("no_such_database"))


def test_no_such_user(opened: Open, postgres: PostgresServer) -> None:
    assert "refuses the user or the password" in told(opened, postgres.url("postgres", "nobody"))


def test_an_option_that_libpq_does_not_know(opened: Open, postgres: PostgresServer) -> None:
    assert "option" in told(opened, postgres.url("postgres") + "&no_such_option=1")
    assert "option" in told(opened, "postgresql://u:s3cr3t@127.0.0.1:1/d?sslmode=maybe")


def test_a_user_that_may_not_make_tables_needs_a_command(
    opened: Open, postgres: PostgresServer
) -> None:
    """Then it may use them."""
    name = postgres.make_database()
    plain = postgres.url(name, "plain", "p")
    with postgres.connect(name) as server:
        server.execute("CREATE ROLE plain LOGIN PASSWORD 'p'")
        server.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        server.execute(
            "ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO plain"
        )
        server.execute("ALTER DEFAULT PRIVILEGES GRANT USAGE ON SEQUENCES TO plain")
    assert "flightsvc db upgrade" in told(opened, plain)
    opened(postgres.url(name))
    records = opened(plain)
    assert records.write(row(file_digest="a" * 64)) == "written"
    assert records.write(row(fence=2)) == "written"
    assert records.forget_session("acme", "s-1").rows == 1


def test_a_schema_of_its_own(opened: Open, postgres: PostgresServer) -> None:
    name = postgres.make_database()
    with postgres.connect(name) as server:
        server.execute("CREATE SCHEMA interviews")
    url = postgres.url(name) + "&options=-c%20search_path%3Dinterviews"
    assert opened(url).write(row()) == "written"
    with postgres.connect(name) as server:
        counted = server.execute("SELECT count(*) FROM interviews.flightsvc_records").fetchall()
    assert counted == [(1,)]


def test_a_folder_that_cannot_be_made(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "rows", tmp_path):
        message = told(opened, f"sqlite:///{path}")
        assert "FLIGHTSVC_DATA_DIR" in message
        assert str(path) in message


def test_a_file_that_is_no_database(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("something else " * 1_000)
    assert "is no database" in told(opened, f"sqlite:///{tmp_path}/rows")
    assert (tmp_path / "rows").read_text() == "something else " * 1_000


def test_the_driver_is_needed_only_where_it_is_used(
    monkeypatch: pytest.MonkeyPatch, opened: Open, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert opened(f"sqlite:///{tmp_path}/rows").write(row()) == "written"
    with pytest.raises(SettingsError, match="install psycopg"):
        opened("postgresql://u:p@h/d")


def test_the_service_does_not_begin_with_a_url_that_it_cannot_read() -> None:
    environ = {"FLIGHTSVC_DATABASE_URL": "mysql://u:s3cr3t@h/d"}
    with pytest.raises(SettingsError) as refused:
        load_settings(environ)
    assert "FLIGHTSVC_DATABASE_URL has the driver mysql" in str(refused.value)
    assert "s3cr3t" not in str(refused.value)


def test_settings_do_not_show_it() -> None:
    settings = Settings(database_url=f"postgresql://{SUPERUSER}:s3cr3t@h/d")
    assert "s3cr3t" not in repr(settings)
