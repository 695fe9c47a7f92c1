"""Waiting for another worker's owner."""

from __future__ import annotations

import random
import time

from flightsvc.flight.coordinator import Following, read_failure
from flightsvc.flight.events import FlightEvents
from flightsvc.flight.local import LocalFlight
from flightsvc.flight.reader import ASK_AGAIN, AskAgain, FlightEvent
from flightsvc.flight.state import Crashed, End

#: At most this many seconds are added to a re-ask, so that workers do not ask all at once.
JITTER_S = 0.1


class FlightFollower:
    """Waits for the news of one flight at a time for each of this worker's following flights."""

    def __init__(self, events: FlightEvents) -> None:
        self._events = events

    def follow(self, flight: LocalFlight, following: Following) -> End | None:
        """Wait for the owner's end.

        :returns: the owner's failure, which the event carries whole; or None: ask Redis again
            (for the answer, or because the owner is silent, has let go, or nobody waits here).
        """
        subscription = self._events.subscribe(flight.key.flight_id, following.last_event)
        flight.on_unwanted = lambda: subscription.tell(ASK_AGAIN)
        limit = time.monotonic() + following.patience_ms / 1000 + random.uniform(0, JITTER_S)
        try:
            while True:
                news = subscription.next(limit)
                if isinstance(news, AskAgain):
                    return None
                if news.fence < following.fence or news.kind in ("owned", "chunk"):
                    continue  # an earlier owner's, or nothing that ends the wait
                flight.ended_at = news.read_at
                return _failure(news) if news.kind == "failed" else None
        finally:
            flight.on_unwanted = None
            self._events.unsubscribe(flight.key.flight_id, subscription)


def _failure(event: FlightEvent) -> Crashed:
    fields = event.fields
    failure = read_failure(
        fields[b"error_type"],
        fields[b"code"],
        fields[b"retryable"],
        fields[b"status"],
        fields[b"wait_ms"],
    )
    return Crashed(failure, event.fence)
