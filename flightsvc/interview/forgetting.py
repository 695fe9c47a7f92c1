"""Forgetting what was asked and answered: rows, files, stored answers, the workers' memory."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from flightsvc.errors import CoordinationUnavailable, FlightSvcError
from flightsvc.files import FileStore
from flightsvc.flight.service import SingleFlight
from flightsvc.interview.keeping import SESSION, Keeping, mark_of
from flightsvc.records import Records
from flightsvc.store import StoreError
from flightsvc.store.shared import SharedState

log = logging.getLogger(__name__)

#: age in s at which a file without a row belongs to no question that is still being asked
LEFTOVER_S = 86_400.0
#: age in s at which a deletion is past: no answer replays for longer, no question lasts longer
MARK_S = 7 * 86_400.0


class Forgetting:
    """Deletes rows, and with them their files, stored answers and memories.

    The database keeps a mark of a deleted session: what was asked before is neither kept nor
    replayed after that, wherever it still stands, and whoever still works on it.

    :param shared: tells the other workers.
    """

    def __init__(
        self,
        records: Records,
        files: FileStore,
        flights: SingleFlight,
        keeping: Keeping,
        shared: SharedState,
    ) -> None:
        self._records = records
        self._files = files
        self._flights = flights
        self._keeping = keeping
        self._shared = shared
        shared.watch.on_forgotten(self._here)

    def session(self, tenant: str, session_id: str) -> None:
        """Forget everything of a session.

        :raises RecordsError: the database does not answer.
        :raises CoordinationUnavailable: Redis does not; what it holds is not forgotten.
        """
        mark = mark_of(tenant, session_id)
        self._keeping.heard_deleted(mark)
        # a fence is never below the time of its question in µs: this is above all that were asked
        below_fence = 1_000 * (self._tell([mark]) + 1)
        gone = self._records.forget_session(tenant, session_id, below_fence=below_fence)
        self.files(gone.file_digests)
        self._answers(gone.flight_ids)

    def flight(self, tenant: str, flight_id: str) -> bool:
        """Forget what came from one flight; whether there was anything.

        :raises RecordsError: the database does not answer.
        :raises CoordinationUnavailable: Redis does not.
        """
        self._answers([flight_id])
        gone = self._records.forget_flight(tenant, flight_id)
        self.files(gone.file_digests)
        return gone.rows > 0

    def _answers(self, flight_ids: Sequence[str]) -> None:
        for flight_id in flight_ids:
            self._keeping.forget(flight_id)
            self._flights.forget(flight_id)
        self._tell(flight_ids)

    def _tell(self, marks: Sequence[str]) -> int:
        """Tell all workers; Redis's time in ms, 0 in mode ``local``."""
        try:
            return self._shared.tell_forgotten(marks)
        except StoreError as error:
            if self._flights.coordination != "off":
                raise CoordinationUnavailable(retry_after_s=1) from error
            return 0

    def leftovers(self) -> None:
        """Forget files that came to nothing, and so have no row to go with, and old marks.

        :raises RecordsError: the database does not answer.
        """
        old = self._files.older_than(LEFTOVER_S)
        self.files(self._records.unused(old) if old else ())
        self._records.forget_marks(MARK_S)

    def files(self, digests: Collection[str]) -> None:
        """Forget files that no row is about any more."""
        for digest in digests:
            try:
                self._files.delete(digest)
            except (OSError, FlightSvcError):
                log.exception("a forgotten file is still there: %s", digest)

    def _here(self, flight_id: str) -> None:
        """Another worker has forgotten a flight, or a session."""
        if flight_id.startswith(SESSION):
            self._keeping.heard_deleted(flight_id)
            return
        self._keeping.forget(flight_id)
        self._flights.forget_here(flight_id)
