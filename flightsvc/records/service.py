"""``Records``: answers as rows, unique by business key, each under its flight's fence."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import gevent
from sqlalchemy import Connection, Delete, Select

from flightsvc.errors import RecordsError, SettingsError
from flightsvc.metrics import RECORDS_ERRORS, RECORDS_TIME, RECORDS_WRITES, Metrics
from flightsvc.records import tables
from flightsvc.records.database import Database
from flightsvc.records.faults import NoAccess, busy
from flightsvc.records.rows import (
    Forgotten,
    Kind,
    Record,
    SessionRecords,
    StoredRecord,
    Written,
    fault,
)
from flightsvc.records.upgrade import settings_error, upgrade
from flightsvc.settings import Settings
from flightsvc.settings.database_url import DatabaseUrl, parse_database_url

T = TypeVar("T")

#: the file in data_dir
FILE = "records.sqlite3"
#: rows that are forgotten for their age in one transaction
MOST_FORGOTTEN = 500

log = logging.getLogger("flightsvc.records")


class Records:
    """The rows of all tenants.

    Every method is one transaction, or none; in between no connection is in use. A method may be
    called from any greenlet, and never blocks the others.

    :raises RecordsError: of every method: it was not done. What could not be written is written
        by the next replay of the answer.
    """

    def __init__(self, database: Database, metrics: Metrics) -> None:
        self._database = database
        self._metrics = metrics
        self._is_upgraded = False
        self._upgrading: gevent.Greenlet[[], RecordsError | None] | None = None

    def write(self, record: Record) -> Written:
        """Keep an answer, unless that of a newer owner is kept already, or the session was deleted
        since it was asked for.

        :returns: ``written`` also where the same answer, or one with the same fence, is kept
            already.
        """

        def write() -> Written:
            wrong = fault(record)
            if wrong:
                raise RecordsError(f"A row cannot be kept: {wrong}.", kind="rejected")
            now_ms = _now_ms()

            def keep(connection: Connection) -> Written:
                if tables.is_forgotten(connection, record):
                    return "forgotten"
                return "written" if tables.write(connection, record, now_ms) else "stale"

            return self._use(keep)

        outcome = self._counted("write", write)
        self._metrics.count(RECORDS_WRITES, kind=record.kind, outcome=outcome)
        return outcome

    def find(
        self, tenant: str, session_id: str, kind: Kind, business_key: str
    ) -> StoredRecord | None:
        """The row of a business key."""
        return self._find(tables.find(tenant, session_id, kind, business_key))

    def find_flight(self, tenant: str, session_id: str, flight_id: str) -> StoredRecord | None:
        """The row that came from a flight, if it still does."""
        return self._find(tables.find_flight(tenant, session_id, flight_id))

    def session(self, tenant: str, session_id: str) -> SessionRecords:
        """Everything that is kept of a session; nothing for one that nobody knows."""
        wanted = tables.of_session(tenant, session_id)

        def read(connection: Connection) -> SessionRecords:
            rows = connection.execute(wanted).mappings()
            return SessionRecords(tenant, session_id, tuple(map(tables.stored, rows)))

        return self._counted("session", lambda: self._use(read, reads=True))

    def forget_session(
        self, tenant: str, session_id: str, *, below_fence: int = 0
    ) -> Forgotten:
        """Delete everything that is kept of a session, and keep nothing more of what was asked
        before.

        :param below_fence: no fence of a question that was asked before is above it.
        """
        now_ms = _now_ms()
        return self._forget(
            tables.forget_session(tenant, session_id),
            lambda c: tables.mark_forgotten(c, tenant, session_id, below_fence, now_ms),
        )

    def forget_flight(self, tenant: str, flight_id: str) -> Forgotten:
        """Delete what came from a flight."""
        return self._forget(tables.forget_flight(tenant, flight_id))

    def forget_older(self, age_s: float, *, most: int = MOST_FORGOTTEN) -> Forgotten:
        """Delete rows that were written longer ago, of all tenants, the oldest first.

        :param age_s: in s.
        :param most: so many at once; if as many went, there may be more.
        """
        return self._forget(tables.forget_written_before(_now_ms() - int(age_s * 1000), most))

    def forget_marks(self, age_s: float) -> None:
        """Forget that sessions were deleted, once nothing of them can come any more.

        :param age_s: of the deletion, in s.
        """
        old = tables.forget_marks_before(_now_ms() - int(age_s * 1000))
        self._counted("forget", lambda: self._use(lambda c: c.execute(old)))

    def deleted_ago_s(self, tenant: str, session_id: str) -> float:
        """For how long a session has been deleted, in s; infinite: it was not, or long ago."""
        wanted = tables.deleted_at(tenant, session_id)
        at_ms = self._counted("find", lambda: self._use(lambda c: c.scalar(wanted), reads=True))
        return math.inf if at_ms is None else max(0.0, (_now_ms() - int(at_ms)) / 1_000)

    def unused(self, digests: Collection[str]) -> list[str]:
        """Those of some files that no row is about."""
        wanted = tables.used(digests)
        known = self._counted(
            "unused", lambda: self._use(lambda c: set(c.scalars(wanted)), reads=True)
        )
        return sorted(set(digests) - known)

    def prepare(self) -> None:
        """Bring the tables up to date now rather than on first use.

        A database that does not answer is no fault of the settings: it is logged, and tried again
        on each use.

        :raises SettingsError: the database lets nobody in, or cannot be made.
        """
        try:
            self._counted("prepare", lambda: upgrade(self._database))
            self._is_upgraded = True
        except NoAccess as fault:
            raise settings_error(self._database, fault) from None
        except RecordsError as error:
            log.warning("Answers are not kept for now: %s", error.inside)

    def close(self) -> None:
        """Give back what this process holds."""
        self._database.close()

    def _find(self, wanted: Select[Any]) -> StoredRecord | None:
        def find(connection: Connection) -> StoredRecord | None:
            row = connection.execute(wanted).mappings().first()
            return tables.stored(row) if row is not None else None

        return self._counted("find", lambda: self._use(find, reads=True))

    def _forget(
        self, statement: Delete, first: Callable[[Connection], None] = lambda _: None
    ) -> Forgotten:
        """Delete rows, and see which of their files are still used: in one transaction.

        :param first: done in it before.
        """
        gone = statement.returning(tables.RECORDS.c.flight_id, tables.RECORDS.c.file_digest)

        def forget(connection: Connection) -> Forgotten:
            first(connection)
            rows = connection.execute(gone).all()
            digests = {digest for _, digest in rows if digest}
            if digests:
                digests -= set(connection.scalars(tables.used(digests)))
            flights = dict.fromkeys(flight_id for flight_id, _ in rows)
            return Forgotten(len(rows), tuple(flights), tuple(sorted(digests)))

        return self._counted("forget", lambda: self._use(forget))

    def _use(self, work: Callable[[Connection], T], *, reads: bool = False) -> T:
        if not self._is_upgraded:
            self._await_upgrade()
        return self._database.read(work) if reads else self._database.write(work)

    def _await_upgrade(self) -> None:
        """Upgrade in a greenlet of its own: nobody waits for it longer than for the database."""
        if self._upgrading is None or self._upgrading.dead:
            self._upgrading = gevent.spawn(self._upgrade)
        upgrading = self._upgrading
        upgrading.join(self._database.timeout_s)
        if not upgrading.dead:
            raise busy(self._database.url)
        if upgrading.value is not None:
            raise upgrading.value

    def _upgrade(self) -> RecordsError | None:
        try:
            upgrade(self._database)
        except RecordsError as error:
            return error
        except SettingsError as error:  # its driver is missing: too late to refuse the start
            return RecordsError(str(error))
        self._is_upgraded = True
        return None

    def _counted(self, verb: str, use: Callable[[], T]) -> T:
        began = time.monotonic()
        try:
            return use()
        except RecordsError as error:
            self._metrics.count(RECORDS_ERRORS, kind=error.kind)
            raise
        finally:
            self._metrics.time(RECORDS_TIME, time.monotonic() - began, verb=verb)


def open_records(settings: Settings, metrics: Metrics, *, prepare: bool = True) -> Records:
    """The records of a process; nothing is shared with a process that forked it.

    :param prepare: upgrade the tables now; else on first use, and no database is touched now.
    :raises SettingsError: the database cannot be used as the settings are.
    """
    records = Records(open_database(settings), metrics)
    if prepare:
        records.prepare()
    return records


def open_database(settings: Settings) -> Database:
    """The database that the settings name; it is not touched yet.

    :raises SettingsError: the URL cannot be read.
    """
    return Database(
        database_url(settings),
        timeout_s=settings.database_timeout_ms / 1000,
        size=settings.database_pool_size,
    )


def database_url(settings: Settings) -> DatabaseUrl:
    """Where the rows are.

    :raises SettingsError: the URL cannot be read.
    """
    if not settings.database_url:
        return DatabaseUrl("sqlite", str(Path(settings.data_dir, FILE).absolute()))
    try:
        return parse_database_url(settings.database_url)
    except ValueError as wrong:
        raise SettingsError(f"FLIGHTSVC_DATABASE_URL {wrong}") from None


def _now_ms() -> int:
    return int(time.time() * 1000)
