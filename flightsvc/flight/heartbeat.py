"""One greenlet keeps all the flights of a worker alive.

All heartbeats go out together, a script call a shard, the shards side by side: one frozen
node of a cluster holds up its own shards only. The same greenlet settles acquires whose reply
was lost: when Redis is back it asks again with the same token, and adopts or releases.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import gevent
from gevent.event import Event

from flightsvc.flight.call import Signal
from flightsvc.flight.coordinator import FlightCoordinator, Ownership
from flightsvc.flight.health import CoordinationHealth
from flightsvc.flight.state import Ack
from flightsvc.settings import Settings
from flightsvc.store import Names, StoreError

log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class _Beating:
    own: Ownership
    tell: Callable[[Signal], None]
    unwanted: Callable[[], bool]
    beaten_at: float = field(default_factory=time.monotonic)
    #: followers on other workers, as of the last heartbeat
    followers: int = 0


class Duty(Protocol):
    """Work for the heartbeat greenlet; its length says how much of it there is."""

    def __len__(self) -> int: ...

    def beat(self) -> None: ...


class HeartbeatManager:
    """Renews what this worker owns, and tells a flight that is no longer its own.

    :param duties: what else is done at each beat, while Redis answers.
    """

    def __init__(
        self,
        coordinator: FlightCoordinator,
        health: CoordinationHealth,
        names: Names,
        settings: Settings,
        *duties: Duty,
    ) -> None:
        self._coordinator = coordinator
        self._health = health
        self._names = names
        self._interval_s = settings.heartbeat_ms / 1000
        self._give_up_s = settings.takeover_detect_ms / 1000
        self._may_outlive_redis = settings.mode != "distributed"
        self._duties = duties
        self._beating: dict[int, _Beating] = {}
        self._wanted = Event()
        self._greenlet: gevent.Greenlet[..., Any] | None = None

    def __len__(self) -> int:
        return len(self._beating)

    @contextmanager
    def keep(
        self,
        own: Ownership,
        tell: Callable[[Signal], None],
        unwanted: Callable[[], bool] = lambda: False,
    ) -> Iterator[None]:
        """Keep an ownership alive while the block runs.

        :param tell: hears STALE, LOST or UNBEATEN, and UNWANTED again where nobody waits in other
            workers either; must not block.
        :param unwanted: whether nobody waits in this worker, and the call may be stopped.
        """
        beating = _Beating(own, tell, unwanted)
        self._beating[id(beating)] = beating
        self.want()
        try:
            yield
        finally:
            del self._beating[id(beating)]

    def want(self) -> None:
        """See to it that the next beat comes."""
        self._wanted.set()
        if self._greenlet is None:
            self._greenlet = gevent.spawn(self._run)

    def close(self) -> None:
        """Stop beating: what is still owned dies by its lease."""
        if self._greenlet is not None:
            self._greenlet.kill(timeout=1)

    def _run(self) -> None:
        due = time.monotonic() + self._interval_s
        while True:
            self._wanted.wait()
            gevent.sleep(max(0.0, due - time.monotonic()))
            due = time.monotonic() + self._interval_s
            self._wanted.clear()
            try:
                self.beat_all()
                for duty in self._duties if self._health.any_up else ():
                    duty.beat()
            except Exception:
                log.exception("a heartbeat failed unexpectedly; the next one is due")
            if self._beating or any(map(len, self._duties)):
                self._wanted.set()

    def beat_all(self) -> None:
        """Renew everything once."""
        shards: dict[int, list[_Beating]] = {}
        for beating in self._beating.values():
            shard = self._names.shard_of(beating.own.key.flight_id)
            shards.setdefault(shard, []).append(beating)
        gevent.joinall([gevent.spawn(self._beat, *item) for item in shards.items()])

    def _beat(self, shard: int, beating: list[_Beating]) -> None:
        # a flight that is lost and granted again changes its fence: send what it was at the start
        fences = [item.own.fence for item in beating]
        try:
            answers = self._coordinator.beat(shard, [item.own for item in beating])
        except StoreError:
            self._missed(beating)
            return
        self._health.of(shard).heard()
        for item, fence, (ack, followers) in zip(beating, fences, answers, strict=True):
            if ack is Ack.OK:
                item.beaten_at, item.followers = time.monotonic(), followers
                if not followers and item.unwanted():
                    item.tell(Signal.UNWANTED)
            elif item.own.fence == fence:
                item.tell(Signal.LOST if ack is Ack.LOST else Signal.STALE)

    def _missed(self, beating: list[_Beating]) -> None:
        if self._may_outlive_redis:
            return
        for item in beating:
            if time.monotonic() - item.beaten_at > self._give_up_s:
                item.tell(Signal.UNBEATEN)
