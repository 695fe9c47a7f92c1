"""The breaker around coordination: a dead Redis must not cost every caller its time-out.

It guards the acquire only. One time-out or broken connection opens it; while it is open new
callers go on without Redis. A probe closes it, and so does every other command that gets
through (heartbeats and finishes pass by it).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import gevent

from flightsvc.metrics import COORDINATION_UP, Metrics
from flightsvc.store import Store, StoreError

log = logging.getLogger(__name__)

#: Time in seconds between two probes.
PROBE_S = 0.5


class CoordinationHealth:
    """Whether Redis can be asked.

    :param probe: a small write: PING would be answered by a full or read-only server too.
    """

    def __init__(self, store: Store, probe: Callable[[], object], metrics: Metrics) -> None:
        self._store = store
        self._write = probe
        self._probe: gevent.Greenlet[..., Any] | None = None
        self._look: gevent.Greenlet[..., Any] | None = None
        self.up = True
        #: what the last acquire failed with, or None after one that succeeded
        self.last_error: str | None = None
        metrics.gauge(COORDINATION_UP, lambda: float(self.up))

    @property
    def ok(self) -> bool:
        """Whether acquires succeed as far as is known."""
        return self.up and self.last_error is None

    def failed(self, error: StoreError) -> None:
        """An acquire failed."""
        if error.kind != self.last_error and not error.unreachable:
            log.warning("%s: calls that it refuses go on without it", error)
        self.last_error = error.kind
        if error.unreachable and self.up:
            self.up = False
            log.warning("Redis does not answer (%s): new calls go on without it", error.kind)
            self._start_probe()

    def succeeded(self) -> None:
        """An acquire got through."""
        self.last_error = None
        self.heard()

    def heard(self) -> None:
        """Any command got through: Redis is there, whatever it may still refuse."""
        if not self.up:
            self.up = True
            log.warning("Redis answers again")

    def check(self) -> bool:
        """Ask now.

        :returns: whether Redis takes a write.
        """
        try:
            self._write()
        except StoreError as error:
            self.failed(error)
            if not error.unreachable:
                self.heard()
            return False
        self.succeeded()
        return True

    def look_once(self) -> None:
        """At the first use, warn of a server that may throw flights away."""
        if self._look is None:
            self._look = gevent.spawn(self._warn_of_eviction)

    def _warn_of_eviction(self) -> None:
        try:
            policy = self._store.eviction_policy()
        except StoreError:
            return  # it is warned of anyway
        if policy not in (None, "noeviction"):
            log.warning(
                "Redis's maxmemory-policy is %s: a full server would evict flights in the air, "
                "and their calls would be repeated; set it to noeviction",
                policy,
            )

    def close(self) -> None:
        """Stop probing."""
        for greenlet in (self._probe, self._look):
            if greenlet is not None:
                greenlet.kill(timeout=1)

    def _start_probe(self) -> None:
        if self._probe is None or self._probe.dead:
            self._probe = gevent.spawn(self._until, lambda: self.up)

    def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            gevent.sleep(PROBE_S)
            if not done():
                self.check()
