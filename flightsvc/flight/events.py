"""What owners tell followers: where a flight's events are heard.

One reader a worker on a single server, one a shard on a cluster; made at the first need.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from flightsvc.flight.reader import FlightEvent, StreamReader, Subscription
from flightsvc.store import Names, Store


class FlightEvents:
    """The subscriptions of one worker.

    :param worker: names this worker; its wake streams bear the name.
    :param on_ok: called with the shard after each read that got through.
    """

    def __init__(
        self, store: Store, names: Names, worker: str, on_ok: Callable[[int], None]
    ) -> None:
        self._store = store
        self._names = names
        self._worker = worker
        self._on_ok = on_ok
        self._readers: dict[int, StreamReader] = {}

    def __len__(self) -> int:
        return sum(len(reader) for reader in self._readers.values())

    def subscribe(self, flight_id: str, cursor: str) -> Subscription:
        """Hear a flight's events that come after an id."""
        stream = self._names.flight(flight_id)["events"]
        return self._reader_of(flight_id).subscribe(stream, cursor)

    def unsubscribe(self, flight_id: str, subscription: Subscription) -> None:
        """Stop hearing."""
        self._reader_of(flight_id).unsubscribe(subscription)

    def look(self, flight_id: str, cursor: str) -> list[FlightEvent]:
        """What of a flight's events comes after an id now.

        :raises StoreError: if Redis could not be asked.
        """
        stream, now = self._names.flight(flight_id)["events"], time.monotonic()
        found = self._store.look({stream: cursor})
        return [FlightEvent.read(*entry, now) for _, _, entries in found for entry in entries]

    def close(self) -> None:
        """Stop reading; everybody is told to ask again."""
        for reader in self._readers.values():
            reader.close()

    def _reader_of(self, flight_id: str) -> StreamReader:
        shard = self._names.shard_of(flight_id) if self._store.one_slot_a_read else 0
        reader = self._readers.get(shard)
        if reader is None:
            wake = self._names.wake(self._worker, shard)
            on_ok = partial(self._on_ok, shard)
            reader = self._readers[shard] = StreamReader(self._store, wake, on_ok)
        return reader
