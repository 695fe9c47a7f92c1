"""One use of the database at a time: a transaction on a connection that is given back at once.

PostgreSQL is asked from the calling greenlet (psycopg waits with gevent's patched select). SQLite
blocks, so it is asked from a few threads of its own, never from the hub. Neither a connection nor
a thread is shared over a fork: each process makes its own when it first needs one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import gevent
from gevent.threadpool import ThreadPool
from sqlalchemy import Connection, Engine, QueuePool

from flightsvc.errors import RecordsError
from flightsvc.records.engines import LOCK_SHARE, make_engine
from flightsvc.records.faults import FAILURES, explained, silent, unreachable
from flightsvc.settings.database_url import DatabaseUrl

T = TypeVar("T")
Work = Callable[[Connection], T]
#: a value, or what was raised instead
Outcome = tuple[T | None, Exception | None]

#: time in s for which a database that did not answer is left alone; then one caller tries
PAUSE_S = 5.0
#: what a fork inherited is neither used nor closed: closing it would disturb its owner
_inherited: list[object] = []


class Database:
    """A SQLite file or a PostgreSQL database.

    :param url: where it is.
    :param timeout_s: how long a caller waits for one use, in s.
    :param size: connections to PostgreSQL, or threads for SQLite.
    """

    def __init__(self, url: DatabaseUrl, *, timeout_s: float, size: int) -> None:
        self.url = url
        self.timeout_s = timeout_s
        self._size = size
        self._pid = 0
        self._engine: Engine | None = None
        self._threads: ThreadPool | None = None
        self._left_alone_until = 0.0

    def read(self, work: Work[T]) -> T:
        """Run some reading in one transaction.

        :raises RecordsError: it could not be done.
        """
        return self._run(partial(self._transact, work, "BEGIN"), self.timeout_s)

    def write(
        self, work: Work[T], *, timeout_s: float | None = None, lock_s: float | None = None
    ) -> T:
        """Run some writing in one transaction; SQLite takes its lock before.

        :param timeout_s: how long it may take; None: as ever.
        :param lock_s: how long SQLite waits for that lock; None: most of the time that it may take.
        :raises RecordsError: it was not done, or, where the database did not answer in time,
            nobody knows.
        """
        patience_s = timeout_s or self.timeout_s
        lock_ms = int((lock_s or patience_s * LOCK_SHARE) * 1000)
        begin = (f"PRAGMA busy_timeout = {lock_ms}", "BEGIN IMMEDIATE")
        return self._run(partial(self._transact, work, *begin), patience_s)

    def outside(self, work: Work[T]) -> T:
        """Run what no transaction of SQLite may hold, such as a change of its journal mode."""
        return self._run(partial(self._transact, work), self.timeout_s)

    @property
    def connections_in_use(self) -> int:
        """How many connections to PostgreSQL are used right now."""
        pool = self._engine.pool if self._engine is not None else None
        return pool.checkedout() if isinstance(pool, QueuePool) else 0

    def close(self) -> None:
        """Close what this process opened; it opens again if it is used."""
        engine, threads = self._engine, self._threads
        if self._pid != os.getpid():
            return
        self._engine = self._threads = None
        if engine is not None:
            engine.dispose()
        if threads is not None:
            threads.kill()

    def _transact(self, work: Work[T], *begin: str) -> T:
        with self._own_engine().connect() as connection:
            connection.execution_options(begin=begin)
            with connection.begin():
                return work(connection)

    def _run(self, use: Callable[[], T], patience_s: float) -> T:
        with self._answering():
            self._take_over()
            is_remote = self.url.kind == "postgresql"
            ask = self._in_a_greenlet if is_remote else self._in_a_thread
            outcome = ask(use, patience_s)
            if outcome is None:
                raise silent(self.url, patience_s)
            value, failure = outcome
            if isinstance(failure, FAILURES):
                raise explained(failure, self.url) from None
            if failure is not None:
                raise failure
            return value  # type: ignore[return-value]

    def _in_a_greenlet(self, use: Callable[[], T], patience_s: float) -> Outcome[T] | None:
        """In one of its own: a driver that is interrupted may say anything, and whoever ends a
        caller must not hear it."""
        return gevent.spawn(_bounded, use, patience_s).get()

    def _in_a_thread(self, use: Callable[[], T], patience_s: float) -> Outcome[T] | None:
        """In a thread; one that is late still ends what it does."""
        return _within(lambda: self._own_threads().apply(_outcome, (use,)), patience_s)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Ask a database that did not answer only now and then, and one caller at a time: nobody
        else waits for it meanwhile."""
        now = time.monotonic()
        if now < self._left_alone_until:
            raise unreachable(self.url)
        if self._left_alone_until:
            self._left_alone_until = now + PAUSE_S
        try:
            yield
        except RecordsError as error:
            if error.kind == "unreachable":
                self._left_alone_until = time.monotonic() + PAUSE_S
            else:  # it has answered
                self._left_alone_until = 0.0
            raise
        self._left_alone_until = 0.0

    def _take_over(self) -> None:
        """Begin anew after a fork."""
        if self._pid != os.getpid():
            _inherited.extend(filter(None, (self._engine, self._threads)))
            self._engine = self._threads = None
            self._pid = os.getpid()

    def _own_threads(self) -> ThreadPool:
        if self._threads is None:
            self._threads = ThreadPool(self._size)
        return self._threads

    def _own_engine(self) -> Engine:
        if self._engine is None:
            self._engine = make_engine(self.url, timeout_s=self.timeout_s, size=self._size)
        return self._engine


def _outcome(use: Callable[[], T]) -> Outcome[T]:
    """What is raised is handed on: a thread's hub and a greenlet's would print it."""
    try:
        return use(), None
    except Exception as error:
        return None, error


def _bounded(use: Callable[[], T], patience_s: float) -> Outcome[T] | None:
    """None: it took too long."""
    late = time.monotonic() + patience_s
    outcome = _within(partial(_outcome, use), patience_s)
    # an interrupted driver's own complaint is not what happened
    is_late = outcome is not None and outcome[1] is not None and time.monotonic() >= late
    return None if is_late else outcome


def _within(use: Callable[[], T], patience_s: float) -> T | None:
    """None: it took too long."""
    limit = gevent.Timeout(patience_s)
    limit.start()
    try:
        return use()
    except gevent.Timeout as fired:
        if fired is not limit:
            raise
        return None
    finally:
        limit.close()
