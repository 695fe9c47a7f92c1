"""Bringing the tables up to date: at the start of each worker, or by ``flightsvc db upgrade``.

Any number of processes may try at once: one does it, under a lock that dies with its holder, and
the others find it done. On PostgreSQL it is an advisory lock, which holds across machines; on
SQLite it is the write lock of the file.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import gevent
from sqlalchemy import Connection, String, column, inspect, select, table, text

from flightsvc.errors import RecordsError, SettingsError
from flightsvc.records.database import Database
from flightsvc.records.faults import NoAccess
from flightsvc.records.migrations import REVISIONS
from flightsvc.records.tables import VERSION_TABLE

#: longest wait for another process's upgrade, in s, and for one's own
LOCK_S, UPGRADE_S = 60, 600
#: key of the advisory lock: no other program should have the same
ADVISORY_LOCK = int.from_bytes(b"flightsv")
#: longest time in s to switch SQLite's journal mode beside others that do the same
JOURNAL_S = 5.0

log = logging.getLogger("flightsvc.records")

#: Alembic keeps what it works on in globals of its modules
_alembic = threading.Lock()


@dataclass(frozen=True)
class Version:
    """How far the tables of a database are.

    :param found: the last step that was made; empty: none.
    """

    found: str

    @property
    def is_known(self) -> bool:
        """Whether this program knows it; if not, a newer one was here."""
        return not self.found or self.found in REVISIONS

    @property
    def is_current(self) -> bool:
        """Whether there is nothing to do."""
        return self.found == REVISIONS[-1] or not self.is_known


def current(database: Database) -> Version:
    """How far the tables are.

    :raises RecordsError: the database cannot be asked.
    """
    if database.url.kind == "sqlite" and not Path(database.url.database).exists():
        return Version("")  # looking must not make it
    return database.read(_version)


def upgrade(database: Database) -> tuple[Version, Version]:
    """Bring the tables up to date; at once, if they are.

    :returns: how far they were, and are; the same twice, if another process did it.
    :raises NoAccess: it cannot be done as the settings are.
    :raises RecordsError: it was not done, and may be tried again.
    """
    if database.url.kind == "sqlite":
        _use_wal(database)
    before = database.read(_version)
    if before.is_current:
        if not before.is_known:
            log.warning("The %s was upgraded by a newer flightsvc", database.url)
        return before, before
    with _alembic:
        before, after = database.write(_upgrade, timeout_s=UPGRADE_S, lock_s=LOCK_S)
    if before != after:
        log.info("The %s is upgraded to %s", database.url, after.found)
    return before, after


def settings_error(database: Database, fault: NoAccess) -> SettingsError:
    """What an operator is told of a database that lets nobody in."""
    if database.url.kind == "sqlite":
        return SettingsError(
            f"The {database.url} {fault.reason}: set FLIGHTSVC_DATA_DIR to a folder that the "
            f"service may write, or FLIGHTSVC_DATABASE_URL to another database."
        )
    return SettingsError(
        f"FLIGHTSVC_DATABASE_URL: the {database.url} {fault.reason}. Correct the URL or the "
        f"server's rights; a user that may not make tables can have `flightsvc db upgrade` run by "
        f"one that may."
    )


def _version(connection: Connection) -> Version:
    if not inspect(connection).has_table(VERSION_TABLE):
        return Version("")
    versions = select(column("version_num", String())).select_from(table(VERSION_TABLE))
    return Version(connection.scalars(versions).first() or "")


def _upgrade(connection: Connection) -> tuple[Version, Version]:
    """In a transaction: all steps, or none; how far the tables were under the lock, and are."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_S}s'"))
        connection.execute(
            text("SELECT pg_advisory_xact_lock(:key)").bindparams(key=ADVISORY_LOCK)
        )
    found = _version(connection)
    if found.is_current:  # another process did it while we waited
        return found, found
    # many workers never need it
    from alembic.command import upgrade as upgrade_to
    from alembic.config import Config

    config = Config()
    folder = Path(__file__).with_name("migrations")
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    upgrade_to(config, "head")
    return found, _version(connection)


def _use_wal(database: Database) -> None:
    """So that readers and the writer do not wait for each other; the file remembers it.

    SQLite does not wait for others here.
    """
    until = time.monotonic() + JOURNAL_S
    while True:
        try:
            mode = database.outside(_set_wal)
            break
        except RecordsError as error:
            if error.kind != "busy" or time.monotonic() > until:
                raise
            gevent.sleep(0.02)
    if mode != "wal":
        log.warning("The %s cannot use a WAL, so reading waits for writing", database.url)


def _set_wal(connection: Connection) -> str:
    mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
    if mode != "wal":
        mode = connection.exec_driver_sql("PRAGMA journal_mode = WAL").scalar_one()
    return str(mode)
