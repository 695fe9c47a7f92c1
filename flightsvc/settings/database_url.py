"""What ``database_url`` may say: a SQLite file, or a PostgreSQL database.

::

    sqlite:////folder/file                                    (three slashes: a relative path)
    postgresql://[user[:password]@]host[:port]/database       also postgres://
    postgresql:///database?host=/folder/of/the/socket

User and password are percent-encoded. PostgreSQL takes libpq's options (``?sslmode=require``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qsl, unquote

Kind = Literal["sqlite", "postgresql"]

SCHEMES: dict[str, Kind] = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "postgresql+psycopg": "postgresql",
    "postgres": "postgresql",
}
EXAMPLES: dict[Kind, str] = {
    "sqlite": "sqlite:////folder/file",
    "postgresql": "postgresql://user:password@host:5432/database",
}
#: options that would go round the settings, or round the user and host of the URL itself
_TAKEN = frozenset({"dbname", "hostaddr", "password", "port", "user"})
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@,/?#\s]+)?(?::([0-9]{1,5}))?")


@dataclass(frozen=True)
class DatabaseUrl:
    """A database URL, taken apart.

    :param database: the name of it, or the path of the file.
    :param port: None: not given.
    :param options: libpq's.
    """

    kind: Kind
    database: str
    host: str = ""
    port: int | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        """Where it is, in words; without user and password."""
        if self.kind == "sqlite":
            return f"SQLite file {self.database}"
        host = self.host or self.options.get("host", "")
        return f"PostgreSQL database {self.database}" + (f" on {host}" if host else "")


def parse_database_url(url: str) -> DatabaseUrl:
    """Take a URL apart.

    :raises ValueError: what is wrong with it, and the fix, as the end of a sentence about the
        setting; shows no part of the URL that can hold a password.
    """
    scheme, found, rest = url.partition("://")
    if not found or scheme not in SCHEMES:
        known = re.fullmatch(r"[a-z0-9+]{1,30}", scheme) if found else None
        raise ValueError(
            (f"has the driver {scheme}, which there is none for: it " if known else "")
            + "must begin with sqlite:// or postgresql://."
        )
    kind = SCHEMES[scheme]
    if "#" in rest and kind == "postgresql":
        raise ValueError("has a #: write it as %23 if it belongs to the password, else remove it.")
    return _sqlite(rest) if kind == "sqlite" else _postgresql(rest)


def database_url_fault(url: str) -> str:
    """What is wrong with a database URL, and the fix; empty if it is fine."""
    try:
        parse_database_url(url)
    except ValueError as fault:
        return str(fault)
    return ""


def _sqlite(rest: str) -> DatabaseUrl:
    authority, slash, path = rest.partition("/")
    if authority or not slash:
        raise ValueError(f"must have three slashes before its path: write {EXAMPLES['sqlite']}.")
    if "?" in path:
        raise ValueError("has options, but a SQLite file takes none: remove them.")
    path = unquote(path)
    if not path.strip("/") or path == ":memory:" or "\0" in path:
        raise ValueError(f"must name a file: write {EXAMPLES['sqlite']}.")
    return DatabaseUrl("sqlite", path)


def _postgresql(rest: str) -> DatabaseUrl:
    example = EXAMPLES["postgresql"]
    rest, _, query = rest.partition("?")
    authority, _, database = rest.partition("/")
    user, _, host = authority.rpartition("@")
    name, _, password = user.partition(":")
    match = _HOST.fullmatch(host)
    port = int(match[2]) if match and match[2] else None
    if match is None or (port is not None and not 0 < port < 65_536):
        raise ValueError(
            f"has a host or port that cannot be read: write {example}, with the / ? and @ of a "
            f"password as %2F, %3F and %40."
        )
    database = unquote(database)
    if not database or "/" in database or "\0" in database:
        raise ValueError(f"must name one database: write {example}.")
    return DatabaseUrl(
        "postgresql",
        database,
        host=unquote((match[1] or "").strip("[]")),
        port=port,
        user=unquote(name),
        password=unquote(password),
        options=_options(query),
    )


def _options(query: str) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name in options:
        if not re.fullmatch(r"[a-z_]{1,40}", name):  # may be half a password
            raise ValueError(
                "has an option that is no name: write a ? of a password as %3F, and options as "
                "?name=value&name=value."
            )
        if name in _TAKEN:
            raise ValueError(f"has the option {name}: write it where it belongs in the URL.")
    return options
