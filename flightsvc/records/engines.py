"""SQLAlchemy's engines, as the records use them."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, QueuePool, create_engine, event

from flightsvc.errors import SettingsError
from flightsvc.records import tables
from flightsvc.settings.database_url import DatabaseUrl

#: part of the caller's patience that SQLite itself waits for a lock
LOCK_SHARE = 0.9
#: age in s at which a connection to PostgreSQL is replaced when it is next used
RECYCLE_S = 600


def make_engine(url: DatabaseUrl, *, timeout_s: float, size: int) -> Engine:
    """The engine of a database; a SQLite file is made if there is none.

    On SQLite a transaction begins with the statements in the connection's option ``begin``.

    :param timeout_s: how long a caller waits, in s.
    :param size: most connections to PostgreSQL.
    :raises SettingsError: PostgreSQL's driver is missing.
    :raises OSError: the file's folder cannot be made, or the file not opened.
    """
    if url.kind == "sqlite":
        return _sqlite(Path(url.database), timeout_s * LOCK_SHARE)
    try:
        return _postgresql(url, timeout_s, size)
    except ImportError:
        raise SettingsError(
            "FLIGHTSVC_DATABASE_URL names a PostgreSQL database, but its driver cannot be "
            "loaded: install psycopg[binary], or libpq (Debian: libpq5)."
        ) from None


def _postgresql(url: DatabaseUrl, timeout_s: float, size: int) -> Engine:
    where = URL.create(
        "postgresql+psycopg",
        username=url.user or None,
        password=url.password or None,
        host=url.host or None,
        port=url.port,
        database=url.database,
    )
    arguments = {
        "application_name": "flightsvc",
        "connect_timeout": max(2, math.ceil(timeout_s)),  # libpq takes less for 2
        **url.options,
        "prepare_threshold": None,  # a pooler may stand between
    }
    return create_engine(
        where,
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=0,
        pool_timeout=timeout_s,
        pool_pre_ping=True,
        pool_recycle=RECYCLE_S,
        connect_args=arguments,
        use_native_hstore=False,
        hide_parameters=True,
        json_serializer=tables.to_json,
    )


def _sqlite(file: Path, lock_s: float) -> Engine:
    engine = create_engine(
        URL.create("sqlite+pysqlite", database=str(file)),
        poolclass=NullPool,  # a file that nobody has open is whole, and can be copied
        connect_args={"timeout": lock_s, "isolation_level": None},
        hide_parameters=True,
        json_serializer=tables.to_json,
    )
    # SQLite's other files take over the rights of the first: nobody else reads answers
    file.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(file, os.O_CREAT | os.O_RDONLY, 0o600))
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    return engine


def _configure(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten


def _begin(connection: Connection) -> None:
    for statement in connection.get_execution_options().get("begin", ()):
        connection.exec_driver_sql(statement)
