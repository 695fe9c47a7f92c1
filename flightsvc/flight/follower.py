"""Waiting for another worker's owner."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from contextlib import suppress

from flightsvc.flight.coordinator import Following, read_failure
from flightsvc.flight.events import FlightEvents
from flightsvc.flight.fallback import unpack_fallback
from flightsvc.flight.feed import ChunkFeed
from flightsvc.flight.local import LocalFlight
from flightsvc.flight.reader import ASK_AGAIN, AskAgain, FlightEvent
from flightsvc.flight.serializer import ResultSerializer, UnreadableResult
from flightsvc.flight.state import Crashed, End, Landed, Role
from flightsvc.store import StoreError

log = logging.getLogger(__name__)

#: At most this many seconds are added to a re-ask, so that workers do not ask all at once.
JITTER_S = 0.1


class FlightFollower:
    """Waits for the news of each of this worker's following flights.

    :param saw: told of every fence, so that no later one can be lower.
    """

    def __init__(
        self, events: FlightEvents, serializer: ResultSerializer, saw: Callable[[int], None]
    ) -> None:
        self._events = events
        self._saw = saw
        self._serializer = serializer

    def follow(self, flight: LocalFlight, following: Following) -> End | None:
        """Wait for the owner's end.

        :returns: the owner's failure, which the event carries whole; or None: ask Redis again
            (for the answer, or because the owner is silent, has let go, or nobody waits here).
        """
        if not flight.waiting:
            return None
        feed = flight.feed = ChunkFeed.resumed(flight.feed, flight.buffer, following)
        subscription = self._events.subscribe(flight.key.flight_id, feed.cursor)
        flight.on_unwanted = lambda: subscription.tell(ASK_AGAIN)
        limit = time.monotonic() + following.patience_ms / 1000 + random.uniform(0, JITTER_S)
        try:
            while True:
                news = subscription.next(limit)
                if isinstance(news, AskAgain):
                    return None
                if not feed.take(news):
                    return None
                if news.fence < following.fence or news.kind in ("owned", "chunk"):
                    continue  # an earlier owner's, or nothing that ends the wait
                flight.ended_at = news.read_at
                self._saw(news.fence)
                return self._failure(news) if news.kind == "failed" else None
        finally:
            flight.on_unwanted = None
            self._events.unsubscribe(flight.key.flight_id, subscription)

    def catch_up(self, flight: LocalFlight, fence: int) -> None:
        """Read the last chunks of an answer, where its end was heard of otherwise."""
        feed = flight.feed
        if feed is None or not feed.misses_the_end_of(fence):
            return
        with suppress(StoreError):  # the answer itself is at hand
            for event in self._events.look(flight.key.flight_id, feed.cursor):
                if not feed.take(event):
                    return

    def stand_in(self, flight_id: str, fence: int) -> Landed | None:
        """What those who waited were told in place of an answer, as long as that is remembered.

        :raises StoreError: if Redis could not be asked.
        """
        for event in self._events.look(flight_id, "0"):
            if event.kind == "failed" and event.fence == fence:
                end = self._failure(event)
                return end if isinstance(end, Landed) else None
        return None

    def _failure(self, event: FlightEvent) -> End:
        fields = event.fields
        packed = fields.get(b"fallback")
        if packed:
            try:
                action, payload = unpack_fallback(packed, self._serializer)
                return Landed(payload, Role.FOLLOWER, event.fence, action)
            except UnreadableResult:
                log.warning("a fallback answer in %s is damaged", event.kind)
        failure = read_failure(
            fields[b"error_type"],
            fields[b"code"],
            fields[b"retryable"],
            fields[b"status"],
            fields[b"wait_ms"],
        )
        return Crashed(failure, event.fence)
