"""``database_url``: every form, and what is told of one that cannot work."""

from __future__ import annotations

from pathlib import Path

import pytest

from flightsvc.errors import SettingsError
from flightsvc.records.service import database_url
from flightsvc.settings import Settings, load_settings
from flightsvc.settings.database_url import EXAMPLES, DatabaseUrl, parse_database_url

SECRET = "s3cr3t"

GOOD = {
    "sqlite:////var/lib/rows": DatabaseUrl("sqlite", "/var/lib/rows"),
    "sqlite:///rows.sqlite3": DatabaseUrl("sqlite", "rows.sqlite3"),
    "sqlite:////a%20b/%E8%A1%8C": DatabaseUrl("sqlite", "/a b/行"),
    "postgresql://h/d": DatabaseUrl("postgresql", "d", host="h"),
    "postgres://u@h:1234/d": DatabaseUrl("postgresql", "d", host="h", port=1234, user="u"),
    "postgresql+psycopg://u:p%2F%40%3A@[::1]:5432/d": DatabaseUrl(
        "postgresql", "d", host="::1", port=5432, user="u", password="p/@:"
    ),
    "postgresql://u:p@x@h/d": DatabaseUrl(
        "postgresql", "d", host="h", user="u", password="p@x"
    ),
    "postgresql:///d?host=%2Frun%2Fpostgresql&sslmode=disable": DatabaseUrl(
        "postgresql", "d", options={"host": "/run/postgresql", "sslmode": "disable"}
    ),
}

#: a URL, and what the message must name
REFUSED = {
    "rows.sqlite3": "postgresql://",
    f"mysql://u:{SECRET}@h/d": "driver mysql",
    f"postgresql+asyncpg://u:{SECRET}@h/d": "driver postgresql+asyncpg",
    f"{SECRET} x://h/d": "postgresql://",
    "sqlite://": "three slashes",
    "sqlite://rows": "three slashes",
    "sqlite:///": "name a file",
    "sqlite:///:memory:": "name a file",
    "sqlite:////": "name a file",
    "sqlite:///a%00b": "name a file",
    "sqlite:///rows?mode=ro": "options",
    f"postgresql://u:{SECRET}@h": "one database",
    f"postgresql://u:{SECRET}@h/": "one database",
    f"postgresql://u:{SECRET}@h/a/b": "one database",
    f"postgresql://u:x/{SECRET}@h/d": "%2F",
    f"postgresql://u:x#{SECRET}@h/d": "%23",
    f"postgresql://u:x?{SECRET}@h/d": "%3F",
    f"postgresql://u:{SECRET}@h:port/d": "port",
    f"postgresql://u:{SECRET}@h:0/d": "port",
    f"postgresql://u:{SECRET}@h:66666/d": "port",
    f"postgresql://u:{SECRET}@h1,h2/d": "host",
    f"postgresql://u@h/d?password={SECRET}": "option password",
    "postgresql://u@h/d?user=v": "option user",
}


@pytest.mark.parametrize("url", GOOD)
def test_it_is_taken_apart(url: str) -> None:
    assert parse_database_url(url) == GOOD[url]
    assert Settings.checked(database_url=url).database_url == url


@pytest.mark.parametrize("url", EXAMPLES.values())
def test_the_examples_work(url: str) -> None:
    assert parse_database_url(url).database


@pytest.mark.parametrize("url", REFUSED)
def test_what_cannot_work_is_refused_and_never_shown(url: str) -> None:
    for refuse in (
        lambda: Settings.checked(database_url=url),
        lambda: load_settings({"FLIGHTSVC_DATABASE_URL": url}),
    ):
        with pytest.raises(SettingsError) as refused:
            refuse()
        message = str(refused.value)
        assert "database_url" in message.lower()
        assert REFUSED[url] in message
        assert SECRET not in message


def test_in_words_it_has_no_user_and_no_password() -> None:
    url = parse_database_url(f"postgresql://someone:{SECRET}@h:1/d")
    assert str(url) == "PostgreSQL database d on h"
    assert SECRET not in repr(url)


def test_without_one_it_is_a_file_in_the_data_folder(tmp_path: Path) -> None:
    found = database_url(Settings(data_dir=str(tmp_path)))
    assert found == DatabaseUrl("sqlite", str(tmp_path / "records.sqlite3"))
