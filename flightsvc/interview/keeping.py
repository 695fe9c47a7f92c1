"""Answers as rows: written by whoever made the call, and by a replay that may find none."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from contextlib import suppress
from typing import Any

from flightsvc.errors import RecordsError, SessionForgotten
from flightsvc.flight.key import hash_text
from flightsvc.records import Kind, Record, Records
from flightsvc.store import StoreError
from flightsvc.store.shared import SharedState

log = logging.getLogger(__name__)

#: answers of which this worker remembers that they have their row
MAX_KNOWN = 10_000

#: begins the mark of a deleted session
SESSION = "session:"

#: the kind of row that a stage writes
KINDS: dict[str, Kind] = {
    "evaluation": "evaluation",
    "follow_up": "follow_up",
    "extraction": "question_set",
    "demeanor": "demeanor",
}


class Keeping:
    """Keeps the answers of one worker. A database that is down costs no answer.

    :param records: None: nothing is kept.
    :param shared: says which sessions were deleted; None: nobody does.
    """

    def __init__(self, records: Records | None, shared: SharedState | None) -> None:
        self._records = records
        self._shared = shared
        #: flight → fence of the answer that has its row
        self._known: OrderedDict[str, int] = OrderedDict()
        #: mark of a deleted session → when this worker heard of it (monotonic)
        self._deleted: OrderedDict[str, float] = OrderedDict()

    def keep(self, record: Record) -> None:
        """Write an answer's row; once is enough, see :meth:`knows`.

        :raises SessionForgotten: the session was deleted after the question was asked.
        """
        if self._records is None:
            return
        try:
            outcome = self._records.write(record)
        except RecordsError as error:
            log.warning("flight %s: its row was not written: %s", record.flight_id, error.inside)
            return
        if outcome == "forgotten":
            raise SessionForgotten()
        self._known[record.flight_id] = record.fence
        self._known.move_to_end(record.flight_id)
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    def check_wanted(self, tenant: str, session_id: str, fence: int) -> None:
        """Whether a session still wants what one of its questions came to.

        :param fence: of the question's flight; 0: nobody knows when it was asked.
        :raises SessionForgotten: it was deleted after the question was asked.
        """
        if self._shared is not None and fence:
            deleted_ms = self._shared.watch.forgotten_ms(mark_of(tenant, session_id))
            if 1000 * deleted_ms > fence:  # a fence is never less than the time in µs
                raise SessionForgotten()

    def heard_deleted(self, mark: str) -> None:
        """A session was deleted just now, here or elsewhere."""
        self._deleted[mark] = time.monotonic()
        self._deleted.move_to_end(mark)
        if len(self._deleted) > MAX_KNOWN:
            self._deleted.popitem(last=False)

    def check_asked(
        self, tenant: str, session_id: str, asked_at: float, *, late: bool = False
    ) -> None:
        """Whether a session still wants what was asked at a time of ``time.monotonic()``.

        :param late: look at Redis first: what was asked long ago may be about to be called now.
        :raises SessionForgotten: it was deleted after that, for all that this worker has heard.
        """
        if late and self._shared is not None:
            with suppress(StoreError):
                self._shared.watch.refresh()
        if self._deleted.get(mark_of(tenant, session_id), 0.0) > asked_at:
            raise SessionForgotten()

    def deleted_within(self, tenant: str, session_id: str, last_s: float) -> bool:
        """Whether a session was deleted so lately, in s, or nobody can tell."""
        if self._records is None:
            return False
        try:
            return self._records.deleted_ago_s(tenant, session_id) <= last_s
        except RecordsError:
            return True

    def knows(self, flight_id: str, fence: int) -> bool:
        """Whether an answer has its row, for all that this worker knows, or needs none."""
        return self._records is None or self._known.get(flight_id) == fence

    def forget(self, flight_id: str) -> None:
        """The row is gone: a replay would have to write it again."""
        self._known.pop(flight_id, None)


def mark_of(tenant: str, session_id: str) -> str:
    """What all workers are told when a session is deleted."""
    return SESSION + hash_text("forgotten session", tenant, session_id)[:32]


def record_of(
    stage: str,
    business_key: str,
    *,
    tenant: str,
    session_id: str,
    flight_id: str,
    fence: int,
    value: dict[str, Any],
    asked: dict[str, Any],
    asked_ms: int,
) -> Record:
    """An answer as its row."""
    return Record(
        tenant=tenant,
        session_id=session_id,
        kind=KINDS[stage],
        business_key=business_key,
        fence=fence,
        flight_id=flight_id,
        value=value,
        asked=asked,
        file_digest=asked.get("file_digest"),
        asked_ms=asked_ms,
    )
