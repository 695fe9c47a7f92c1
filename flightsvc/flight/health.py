"""The breaker around coordination: a dead Redis must not cost every caller its time-out.

It guards the acquire only. One time-out or broken connection opens it; while it is open new
callers go on without Redis. A probe closes it, and so does every other command that gets
through (heartbeats and finishes pass by it). There is one for each server, so that a frozen
node of a cluster stops the coordination of its own shards only; a server that takes over from
another begins with a closed one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gevent

from flightsvc.metrics import COORDINATION_UP, Metrics
from flightsvc.store import Names, Store, StoreError

log = logging.getLogger(__name__)

#: Time in seconds between two probes.
PROBE_S = 0.5


class ServerHealth:
    """Whether one server can be asked.

    :param name: the server's; empty where there is only one, or it is not known.
    :param on_down: called when it does not answer any more.
    """

    def __init__(self, name: str, on_down: Callable[[], None]) -> None:
        self.name = name
        self._on_down = on_down
        self._called = f"Redis at {name}" if name else "Redis"
        self.up = True
        #: what the last acquire failed with, or None after one that succeeded
        self.last_error: str | None = None

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
            log.warning(
                "%s does not answer (%s): new calls do not wait for it", self._called, error.kind
            )
            self._on_down()

    def succeeded(self) -> None:
        """An acquire got through."""
        self.last_error = None
        self.heard()

    def heard(self) -> None:
        """Any command got through: it is there, whatever it may still refuse."""
        if not self.up:
            self.up = True
            log.warning("%s answers again", self._called)


class CoordinationHealth:
    """Whether Redis can be asked, server by server.

    :param probe: a small write about a shard: PING would be answered by a full or read-only
        server too.
    """

    def __init__(
        self, store: Store, names: Names, probe: Callable[[int], object], metrics: Metrics
    ) -> None:
        self._store = store
        self._names = names
        self._write = probe
        self._probe: gevent.Greenlet[..., Any] | None = None
        self._look: gevent.Greenlet[..., Any] | None = None
        self._servers: dict[str, ServerHealth] = {}
        metrics.gauge(COORDINATION_UP, lambda: float(self.up))

    def of(self, shard: int) -> ServerHealth:
        """The health of the server that has a shard now."""
        name = self._store.server_of(self._names.live(shard))
        health = self._servers.get(name)
        if health is None:
            health = self._servers[name] = ServerHealth(name, self._start_probe)
        return health

    @property
    def up(self) -> bool:
        """Whether all servers can be asked."""
        return all(health.up for health, _ in self._in_use())

    @property
    def any_up(self) -> bool:
        """Whether some server can be asked."""
        return any(health.up for health, _ in self._in_use())

    @property
    def ok(self) -> bool:
        """Whether acquires succeed everywhere, as far as is known."""
        return all(health.ok for health, _ in self._in_use())

    def check(self) -> bool:
        """Ask all servers now, side by side.

        :returns: whether each of them takes a write.
        """
        return self._check(self._in_use())

    def look_once(self) -> None:
        """At the first use, warn of a server that is too old, or may throw flights away."""
        if self._look is None:
            self._look = gevent.spawn(self._warn)

    def _warn(self) -> None:
        with suppress(StoreError):  # that one is warned of anyway
            for complaint in self._store.complaints():
                log.warning("%s", complaint)

    def close(self) -> None:
        """Stop probing."""
        for greenlet in (self._probe, self._look):
            if greenlet is not None:
                greenlet.kill(timeout=1)

    def _in_use(self) -> list[tuple[ServerHealth, int]]:
        """The servers that have shards now, each with one of them; others are forgotten."""
        shards = {self.of(shard): shard for shard in range(self._names.shards)}
        self._servers = {health.name: health for health in shards}
        return list(shards.items())

    def _check(self, servers: list[tuple[ServerHealth, int]]) -> bool:
        asking = [gevent.spawn(self._check_one, *server) for server in servers]
        gevent.joinall(asking)
        return all(greenlet.value for greenlet in asking)

    def _check_one(self, health: ServerHealth, shard: int) -> bool:
        try:
            self._write(shard)
        except StoreError as error:
            health.failed(error)
            if not error.unreachable:
                health.heard()
            return False
        health.succeeded()
        return True

    def _start_probe(self) -> None:
        if self._probe is None or self._probe.dead:
            self._probe = gevent.spawn(self._probe_until_up)

    def _probe_until_up(self) -> None:
        while not self.up:
            gevent.sleep(PROBE_S)
            self._check([server for server in self._in_use() if not server[0].up])
