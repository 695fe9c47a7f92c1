"""One heavy call at a time for a stage and session, on all workers together.

The lock is taken inside the flight's own call, so it lives as long as the call and no longer:
a caller that leaves changes nothing. Its holder is a flight id. The same question asked again
joins the flight and never waits here; a takeover of the flight takes the lock with it; another
question of the session waits, up to a limit. A dead holder's lock ends with its lease.

Inside a worker the calls queue in memory, so that one of them at most asks Redis.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import gevent
from gevent.event import Event

from flightsvc.errors import CoordinationUnavailable, SessionBusy
from flightsvc.flight import verbs
from flightsvc.flight.call import FlightContext
from flightsvc.flight.coordinator import FlightCoordinator
from flightsvc.flight.events import FlightEvents
from flightsvc.flight.health import CoordinationHealth
from flightsvc.flight.key import hash_text
from flightsvc.flight.state import Ack
from flightsvc.metrics import FLIGHT_LOCKS, Metrics
from flightsvc.settings import Settings
from flightsvc.store import Names, Store, StoreError

log = logging.getLogger(__name__)

#: Time in ms that the news of a free lock stay for late readers.
NEWS_TTL_MS = 30_000
#: What who waited in vain is told to wait, in s: a heavy call takes rather many seconds than one.
RETRY_AFTER_S = 5.0


@dataclass(eq=False, slots=True)
class Hold:
    """A lock that a call holds.

    :param fence: rises with every grant; 0 where the lock is this worker's alone.
    """

    lock_id: str
    stage: str
    holder: str
    flight_fence: int
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    fence: int = 0
    #: whether somebody else may hold the lock by now
    lost: bool = False
    freed: Event = field(default_factory=Event)


class RemoteLocks:
    """The locks of this worker as Redis holds them; renewed with its heartbeats."""

    def __init__(
        self,
        store: Store,
        names: Names,
        coordinator: FlightCoordinator,
        events: FlightEvents,
        health: CoordinationHealth,
        settings: Settings,
        want_beat: Callable[[], None],
    ) -> None:
        self._store = store
        self._names = names
        self._coordinator = coordinator
        self._events = events
        self._health = health
        self._lease_ms = settings.takeover_detect_ms
        self._may_do_without = settings.mode != "distributed"
        self._want_beat = want_beat
        self._held: dict[str, Hold] = {}

    def __len__(self) -> int:
        return len(self._held)

    def take(self, hold: Hold, deadline: float) -> None:
        """Wait for the lock.

        :param deadline: a time of ``time.monotonic()``.
        :raises SessionBusy: another flight held it until then.
        :raises CoordinationUnavailable: Redis does not answer and the mode needs it.
        """
        while True:
            try:
                busy = self._ask(hold)
            except StoreError as error:
                if not self._may_do_without:
                    raise CoordinationUnavailable(retry_after_s=1) from error
                busy = None  # this worker's alone, until a heartbeat gets through
            if busy is None:
                self._held[hold.lock_id] = hold
                self._want_beat()
                return
            self._wait(hold, *busy, deadline)
            if time.monotonic() >= deadline:
                raise SessionBusy(retry_after_s=RETRY_AFTER_S)

    def give_back(self, hold: Hold) -> None:
        """Free the lock; where Redis does not answer, its lease does."""
        if self._held.pop(hold.lock_id, None) is None:
            return
        names = self._names.lock(hold.lock_id)
        try:
            self._store.run(
                verbs.UNLOCK,
                verbs.UNLOCK.key_list(names),
                [hold.token, hold.fence, NEWS_TTL_MS],
            )
        except StoreError:
            log.info("the lock of flight %s ends with its lease", hold.holder)

    def beat(self) -> None:
        """Renew all leases, shard by shard."""
        shards: dict[int, list[Hold]] = {}
        for hold in self._held.values():
            shards.setdefault(self._names.shard_of(hold.lock_id), []).append(hold)
        gevent.joinall([gevent.spawn(self._renew, holds) for holds in shards.values()])

    def _ask(self, hold: Hold) -> tuple[str, int] | None:
        """Ask once.

        :returns: None if the lock is ours; else the last event of its stream, and the ms that
            are left of the holder's lease.
        """
        if not self._health.of(self._names.shard_of(hold.lock_id)).up:
            raise StoreError("down")
        reply: list[Any] = self._store.run(
            verbs.LOCK,
            verbs.LOCK.key_list(self._names.lock(hold.lock_id)),
            [
                hold.holder,
                hold.token,
                hold.flight_fence,
                self._lease_ms,
                self._coordinator.highest_fence,
            ],
        )
        if reply[0] == Ack.BUSY.value.encode():
            return reply[1].decode(), int(reply[2])
        hold.fence = int(reply[1])
        return None

    def _wait(self, hold: Hold, last_event: str, lease_left_ms: int, deadline: float) -> None:
        subscription = self._events.subscribe(hold.lock_id, last_event)
        try:
            subscription.next(min(deadline, time.monotonic() + lease_left_ms / 1000 + 0.01))
        finally:
            self._events.unsubscribe(hold.lock_id, subscription)

    def _renew(self, holds: list[Hold]) -> None:
        keys: list[str] = []
        args: list[str | int] = [self._lease_ms]
        for hold in holds:
            names = self._names.lock(hold.lock_id)
            keys += [names[key] for key in verbs.RENEW.each_keys]
            args += [hold.token, hold.fence]
        try:
            answers = self._store.run(verbs.RENEW, keys, args)
        except StoreError:
            return
        for hold, answer in zip(holds, answers, strict=True):
            if answer != Ack.OK.value.encode() and self._held.get(hold.lock_id) is hold:
                self._lost(hold)

    def _lost(self, hold: Hold) -> None:
        """Evicted, expired, or another's: take it again if it is free."""
        try:
            hold.lost = self._ask(hold) is not None
        except StoreError:
            return  # the next beat looks again


class SessionLock:
    """Session locks of one worker.

    :param remote: the same locks in Redis; None in mode ``local``.
    """

    def __init__(self, remote: RemoteLocks | None, metrics: Metrics) -> None:
        self._remote = remote
        self._metrics = metrics
        self._here: dict[str, Hold] = {}

    @contextmanager
    def hold(
        self, session: str, ctx: FlightContext, *, wait_s: float, tenant: str = ""
    ) -> Iterator[Hold]:
        """Hold the lock of a session while the block runs; use it inside a flight's call.

        :param session: the session, within its tenant; the stage is the flight's.
        :param ctx: what the call got: the flight is the holder.
        :param wait_s: longest wait for another holder, in seconds.
        :raises SessionBusy: another flight of the session held it for all that time.
        """
        stage = ctx.stage
        lock_id = hash_text("session lock", tenant, stage, session)[:32]
        hold = Hold(lock_id, stage, ctx.flight_id, ctx.fence)
        deadline = time.monotonic() + wait_s
        try:
            self._take_here(hold, deadline)
            try:
                if self._remote is not None:
                    self._remote.take(hold, deadline)
                yield hold
            finally:
                self._give_back(hold)
        except SessionBusy:
            self._metrics.count(FLIGHT_LOCKS, stage=stage, outcome="busy")
            raise
        self._metrics.count(FLIGHT_LOCKS, stage=stage, outcome="lost" if hold.lost else "held")

    def _take_here(self, hold: Hold, deadline: float) -> None:
        while True:
            before = self._here.setdefault(hold.lock_id, hold)
            if before is hold:
                return
            if not before.freed.wait(max(0.0, deadline - time.monotonic())):
                raise SessionBusy(retry_after_s=RETRY_AFTER_S)

    def _give_back(self, hold: Hold) -> None:
        if self._remote is not None:
            # of its own: a call that is stopped twice must not stop this too
            gevent.spawn(self._remote.give_back, hold)
        del self._here[hold.lock_id]
        hold.freed.set()
