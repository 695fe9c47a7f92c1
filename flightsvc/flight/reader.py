"""One greenlet that reads for all the followers of a worker (on a cluster, of a shard).

Register, then read, then wait: a subscription starts at the event id that the acquire
returned, so no event falls between. Followers hold no connection. XREAD is not woken by DEL
and says nothing of a trimmed or re-created stream, so the reader also looks at the streams'
last ids; whoever may have missed something is told to ask again, which is always safe.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty
from typing import Any, Final

import gevent
from gevent.event import Event
from gevent.queue import SimpleQueue

from flightsvc.flight import verbs
from flightsvc.store import Names, Store, StoreError
from flightsvc.store.base import Entries, Fields

log = logging.getLogger(__name__)

#: Time in seconds in which new subscriptions share one wake of the reader.
WAKE_S: Final = 0.002
#: Time in seconds between two looks at the last ids of all streams.
LOOK_S: Final = 0.4
#: Time in seconds to wait after a broken connection, at first and at most.
BACKOFF_S: Final = (0.02, 0.5)
#: TTL in ms of the stream that wakes a reader.
WAKE_TTL_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class FlightEvent:
    """One event of a flight, with the time (monotonic) at which this worker read it."""

    kind: str
    fence: int
    fields: Fields
    read_at: float
    #: id of its entry in the stream
    entry: str

    @classmethod
    def read(cls, entry: bytes, fields: Fields, now: float) -> FlightEvent:
        """From an entry of a stream."""
        kind, fence = fields[b"kind"].decode(), int(fields[b"fence"])
        return cls(kind, fence, fields, now, entry.decode())


class AskAgain:
    """Something may have been missed, or nobody waits any more: look at the flight anew."""


ASK_AGAIN: Final = AskAgain()


@dataclass(eq=False, slots=True)
class Subscription:
    """A follower's place in a stream."""

    stream: str
    cursor: str
    _news: SimpleQueue[FlightEvent | AskAgain] = field(default_factory=SimpleQueue)

    def tell(self, news: FlightEvent | AskAgain) -> None:
        """Hand news to the follower; never blocks."""
        self._news.put(news)

    def next(self, limit: float) -> FlightEvent | AskAgain:
        """The next news; :data:`ASK_AGAIN` at a time of ``time.monotonic()``."""
        try:
            return self._news.get(timeout=max(0.0, limit - time.monotonic()))
        except Empty:
            return ASK_AGAIN


class StreamReader:
    """The subscriptions that share one blocking read, and the greenlet that reads for them.

    :param wake: the small stream that wakes this reader, read beside the others.
    :param on_ok: called after each read that got through.
    """

    def __init__(self, store: Store, wake: str, on_ok: Callable[[], None]) -> None:
        self._store = store
        self._wake = wake
        self._wake_cursor = "0-0"
        self._on_ok = on_ok
        self._subscriptions: dict[str, Subscription] = {}
        self._wanted = Event()
        self._blocked = False
        self._waking: gevent.Greenlet[..., Any] | None = None
        self._reader: gevent.Greenlet[..., Any] | None = None

    def __len__(self) -> int:
        return len(self._subscriptions)

    def subscribe(self, stream: str, cursor: str) -> Subscription:
        """Hear the events of a stream that come after an id.

        :param cursor: a stream id, never ``$``: what happens before the first read counts too.
        """
        subscription = Subscription(stream, cursor)
        self._subscriptions[stream] = subscription
        self._wanted.set()
        if self._reader is None or self._reader.dead:
            self._reader = gevent.spawn(self._run)
        elif self._blocked and self._waking is None:
            self._waking = gevent.spawn_later(WAKE_S, self._wake_reader)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Stop hearing, if the place is still this subscription's."""
        if self._subscriptions.get(subscription.stream) is subscription:
            del self._subscriptions[subscription.stream]

    def close(self) -> None:
        """Stop reading; everybody is told to ask again."""
        for greenlet in (self._reader, self._waking):
            if greenlet is not None:
                # before its connection is closed under it
                greenlet.kill(timeout=1)
        self._all_ask_again()

    def _wake_reader(self) -> None:
        self._waking = None
        try:
            entry: bytes = self._store.run(verbs.WAKE, [self._wake], [WAKE_TTL_MS])
            if after(self._wake_cursor, entry.decode()):
                self._wake_cursor = "0-0"  # the stream was lost, and the clock set back
        except StoreError:
            log.debug("a wake did not get through; the reader looks up by itself")

    def _run(self) -> None:
        backoff, looked = BACKOFF_S[0], time.monotonic()
        while True:
            if not self._subscriptions:
                self._wanted.clear()
                self._wanted.wait()
            try:
                self._read()
                if time.monotonic() - looked >= LOOK_S:
                    self._look()
                    looked = time.monotonic()
                backoff = BACKOFF_S[0]
                self._on_ok()
            except StoreError:
                self._all_ask_again()
                gevent.sleep(backoff)
                backoff = min(2 * backoff, BACKOFF_S[1])

    def _read(self) -> None:
        cursors = {name: sub.cursor for name, sub in self._subscriptions.items()}
        self._blocked = True
        try:
            got = self._store.read({**cursors, self._wake: self._wake_cursor})
        finally:
            self._blocked = False
        for stream, entries in got:
            if stream == self._wake:
                self._wake_cursor = entries[-1][0].decode()
            else:
                self._deliver(stream, entries)

    def _deliver(self, stream: str, entries: Entries) -> None:
        subscription = self._subscriptions.get(stream)
        if subscription is None:
            return
        now = time.monotonic()
        for entry, fields in entries:
            # a subscription made while the read was under way may start later than the read did
            if after(entry.decode(), subscription.cursor):
                event = FlightEvent.read(entry, fields, now)
                subscription.cursor = event.entry
                subscription.tell(event)

    def _look(self) -> None:
        """Find the streams that vanished, or were trimmed or made anew, under a follower."""
        cursors = {name: sub.cursor for name, sub in self._subscriptions.items()}
        for stream, last, entries in self._store.look(cursors) if cursors else ():
            self._deliver(stream, entries)
            subscription = self._subscriptions.get(stream)
            if subscription is None or subscription.cursor == last:
                continue
            # gone, made anew with lower ids, or holding less than it gave
            read_to = entries[-1][0].decode() if entries else cursors[stream]
            if last is None or after(cursors[stream], last) or after(last, read_to):
                subscription.tell(ASK_AGAIN)

    def _all_ask_again(self) -> None:
        for subscription in list(self._subscriptions.values()):
            subscription.tell(ASK_AGAIN)


def after(one: str, other: str) -> bool:
    """Whether a stream id is greater than another."""
    return _parts(one) > _parts(other)


def _parts(stream_id: str) -> tuple[int, int]:
    ms, _, number = stream_id.partition("-")
    return int(ms), int(number or 0)


def wake(store: Store, names: Names, worker: str, shard: int) -> None:
    """Wake a worker's reader of a shard; also a write that harms nothing.

    :raises StoreError: if Redis refuses, or does not answer.
    """
    store.run(verbs.WAKE, [names.wake(worker, shard)], [WAKE_TTL_MS])
