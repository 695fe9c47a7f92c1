"""Forgetting what was asked and answered: rows, files, stored answers, the workers' memory."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from flightsvc.errors import CoordinationUnavailable, FlightSvcError
from flightsvc.files import FileStore
from flightsvc.flight.service import SingleFlight
from flightsvc.interview.keeping import Keeping, mark_of
from flightsvc.records import Forgotten, Records
from flightsvc.store import StoreError
from flightsvc.store.shared import SharedState

log = logging.getLogger(__name__)

#: age in s at which a file without a row belongs to no question that is still being asked
LEFTOVER_S = 86_400.0


class Forgetting:
    """Deletes in an order in which a second try finds what a first one left.

    The rows go last: they say what else there is.

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
        known = self._records.session(tenant, session_id)
        self._answers([row.flight_id for row in known.records], mark_of(tenant, session_id))
        self._gone(self._records.forget_session(tenant, session_id))

    def flight(self, tenant: str, flight_id: str) -> bool:
        """Forget what came from one flight; whether there was anything.

        :raises RecordsError: the database does not answer.
        :raises CoordinationUnavailable: Redis does not.
        """
        self._answers([flight_id])
        gone = self._records.forget_flight(tenant, flight_id)
        self._gone(gone)
        return gone.rows > 0

    def _answers(self, flight_ids: Sequence[str], *marks: str) -> None:
        for flight_id in flight_ids:
            self._keeping.forget(flight_id)
            self._flights.forget(flight_id)
        try:
            self._shared.tell_forgotten([*flight_ids, *marks])
        except StoreError as error:
            if self._flights.coordination != "off":
                raise CoordinationUnavailable(retry_after_s=1) from error

    def _gone(self, gone: Forgotten) -> None:
        self._answers(gone.flight_ids)  # a row may have come between
        self.files(gone.file_digests)

    def leftovers(self) -> None:
        """Forget files that came to nothing, and so have no row to go with.

        :raises RecordsError: the database does not answer.
        """
        old = self._files.older_than(LEFTOVER_S)
        self.files(self._records.unused(old) if old else ())

    def files(self, digests: Collection[str]) -> None:
        """Forget files that no row is about any more."""
        for digest in digests:
            try:
                self._files.delete(digest)
            except (OSError, FlightSvcError):
                log.exception("a forgotten file is still there: %s", digest)

    def _here(self, flight_id: str) -> None:
        """Another worker has forgotten a flight."""
        self._keeping.forget(flight_id)
        self._flights.forget_here(flight_id)
