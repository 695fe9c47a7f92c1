"""L1: the worker's own memory of late answers, so that a replay costs no Redis at all.

Holds payloads as bytes, never decoded values: each caller decodes a copy of its own.

No locks: the cache has no point at which gevent could switch greenlets, so each method is whole.
It must not be shared with native threads.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from flightsvc.errors import KeyConflict
from flightsvc.flight.serializer import Payload

#: What one entry costs besides its texts and data, in bytes (a test measures it).
ENTRY_OVERHEAD = 512


@dataclass(frozen=True, slots=True)
class Replay:
    """An answer from memory, and the fence of the ownership that it comes from."""

    payload: Payload
    fence: int


@dataclass(frozen=True, slots=True)
class _Entry:
    replay: Replay
    digest: str
    expires_at: float
    cost: int


class ReplayCache:
    """Payloads by flight id; the least recently used ones go when the bytes run out.

    :param max_bytes: upper bound of :attr:`bytes_used`; 0 keeps nothing.
    :param clock: seconds that never go back.
    """

    def __init__(self, max_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_bytes = max_bytes
        self._clock = clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()  # coldest first
        self._bytes_used = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def bytes_used(self) -> int:
        """Bytes of all entries, their overhead counted."""
        return self._bytes_used

    def get(self, flight_id: str, digest: str = "") -> Replay | None:
        """The live answer of a flight, if it is held.

        :param digest: request digest of the asker's key.
        :raises KeyConflict: if the answer held belongs to another request under the same key.
        """
        entry = self._entries.get(flight_id)
        if entry is None:
            return None
        if entry.expires_at <= self._clock():
            self.forget(flight_id)
            return None
        if entry.digest != digest:
            raise KeyConflict(
                "this key already stands for a different request: "
                "choose a new key, or repeat the same request"
            )
        self._entries.move_to_end(flight_id)
        return entry.replay

    def put(
        self, flight_id: str, payload: Payload, fence: int, ttl_s: float, digest: str = ""
    ) -> None:
        """Keep an answer, unless a live one with a higher fence is held.

        What is superseded goes in any case, also if the new answer itself does not fit or may not
        be kept.

        :param ttl_s: how long it may be replayed, in s; 0 or less: not at all.
        """
        now = self._clock()
        held = self._entries.get(flight_id)
        if held is not None and held.replay.fence > fence and held.expires_at > now:
            return
        self.forget(flight_id)
        cost = ENTRY_OVERHEAD + len(flight_id) + len(digest) + len(payload.data)
        if not ttl_s > 0 or cost > self._max_bytes:
            return
        self._make_room(cost, now)
        self._entries[flight_id] = _Entry(Replay(payload, fence), digest, now + ttl_s, cost)
        self._bytes_used += cost

    def forget(self, flight_id: str) -> None:
        """Drop a flight's answer, if it is held."""
        entry = self._entries.pop(flight_id, None)
        if entry is not None:
            self._bytes_used -= entry.cost

    def clear(self) -> None:
        """Drop everything."""
        self._entries.clear()
        self._bytes_used = 0

    def _make_room(self, cost: int, now: float) -> None:
        """Drop from the cold end what is over the limit, and what has expired there."""
        while self._entries:
            coldest = next(iter(self._entries.values()))
            if self._bytes_used + cost <= self._max_bytes and coldest.expires_at > now:
                return
            _, gone = self._entries.popitem(last=False)
            self._bytes_used -= gone.cost
