"""Forgetting by age, in the background."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Collection

import gevent
from gevent.event import Event

from flightsvc.errors import RecordsError
from flightsvc.records.service import MOST_FORGOTTEN, Records

#: time in s between two looks; the first comes within a minute, so that workers that start together
#: do not look together
EVERY_S, FIRST_WITHIN_S = 3_600.0, 60.0
DAY_S = 86_400

log = logging.getLogger("flightsvc.records")


class Retention:
    """Deletes rows once they are old; all workers may.

    :param days: age in days; 0: nothing is ever too old.
    :param forget_files: is given the digests of files that no row is about any more.
    :param tidy: is called at each look, whatever the age; raises RecordsError as the records do.
    :param every_s: time in s between two looks.
    :param batch: rows that go in one transaction.
    """

    def __init__(
        self,
        records: Records,
        days: int,
        forget_files: Callable[[Collection[str]], None],
        *,
        tidy: Callable[[], None] | None = None,
        every_s: float = EVERY_S,
        batch: int = MOST_FORGOTTEN,
    ) -> None:
        self._records = records
        self._days = days
        self._forget_files = forget_files
        self._tidy = tidy
        self._every_s = every_s
        self._batch = batch
        self._stop = Event()
        self._loop: gevent.Greenlet[[], None] | None = None

    def start(self) -> None:
        """Look now and then, from now on."""
        if (self._days or self._tidy) and self._loop is None:
            self._loop = gevent.spawn(self._run)

    def close(self) -> None:
        """Look no more."""
        self._stop.set()

    def sweep(self) -> int:
        """Forget now what is too old; how many rows went.

        :raises RecordsError: not all of it could be forgotten.
        """
        rows = 0
        while self._days and not self._stop.is_set():
            gone = self._records.forget_older(self._days * DAY_S, most=self._batch)
            rows += gone.rows
            if gone.file_digests:
                self._forget_files(gone.file_digests)
            if gone.rows < self._batch:
                break
        return rows

    def _run(self) -> None:
        wait_s = random.uniform(0, min(FIRST_WITHIN_S, self._every_s))
        while not self._stop.wait(wait_s):
            try:
                rows = self.sweep()
                if self._tidy is not None:
                    self._tidy()
            except RecordsError as error:
                log.warning("Old rows are not forgotten for now: %s", error.inside)
            except Exception:  # such as a file that cannot be deleted; the next look may be better
                log.exception("Old files were not forgotten")
            else:
                if rows:
                    log.info("Forgot %d rows older than %d days", rows, self._days)
            wait_s = self._every_s * random.uniform(0.9, 1.1)
