"""The master that Redis Sentinels name; after a failover, the new one.

Commands and blocking reads both go to the master: a replica may be behind, and what a follower
misses there it would wait for. The client library's own Sentinel client is not used: it asks
one Sentinel after the other, anew for each connection.

Source: https://redis.io/docs/latest/develop/reference/sentinel-clients/
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import redis
import redis.exceptions as upstream
from redis.connection import ConnectionPool

from flightsvc.settings import Settings
from flightsvc.settings.redis_url import Address, RedisUrl
from flightsvc.store.errors import refused, stale
from flightsvc.store.refresh import Refresh, Trouble, first_answers
from flightsvc.store.server import Job, Server, Wiring, connection_options

log = logging.getLogger(__name__)

T = TypeVar("T")

#: The Sentinels' word is good for so long, in seconds: in calm, and while the master has given
#: trouble within the longer of the two. One that froze, was replaced and wakes takes writes for
#: some seconds more, and loses them.
GOOD_FOR_S = 2.0
GOOD_IN_TROUBLE_S = 0.05


class _Named(NamedTuple):
    """What a Sentinel says; a higher epoch is newer."""

    epoch: int
    address: Address


class SentinelRouter:
    """The way to the master of one service.

    :param url: of kind ``sentinel``.
    """

    one_slot_a_read = False

    def __init__(self, settings: Settings, url: RedisUrl) -> None:
        self._service = url.service
        self._wiring = Wiring.of(settings, url, reads=2)
        self._timeout_s = self._wiring.timeout_s
        asking = Wiring(connection_options(url, sentinel=True), self._timeout_s, 1, 1)
        self._sentinels = [
            asking.pool(1, self._timeout_s, host=host, port=port) for host, port in url.addresses
        ]
        self._refresh = Refresh(self._look, self._timeout_s)
        self._master: Server | None = None
        self._address: Address | None = None
        self._looked_at = 0.0
        self._trouble_at = -GOOD_FOR_S
        self._complaint = ""

    def command(self, _name: str, job: Job[T]) -> T:
        return self._do(lambda server: server.command(job))

    def read(self, _name: str, job: Job[T]) -> T:
        return self._do(lambda server: server.read(job))

    def server_of(self, _name: str) -> str:
        return self._master.name if self._master else ""

    def servers(self) -> list[Server]:
        return [self._current()]

    def close(self) -> None:
        self._refresh.close()
        if self._master is not None:
            self._master.close()
        for pool in self._sentinels:
            pool.disconnect()

    def _do(self, at: Callable[[Server], T]) -> T:
        server = self._current()
        try:
            return at(server)
        except (upstream.RedisError, OSError) as error:
            if refused(error) and self._replaced(server):
                return at(self._current())
            if stale(error):
                self._trouble_at = time.monotonic()
                self._refresh.soon()
            raise

    def _current(self) -> Server:
        now = time.monotonic()
        calm = now - self._trouble_at > GOOD_FOR_S
        if self._master is None:
            self._refresh.wait()
        elif now - self._looked_at > (GOOD_FOR_S if calm else GOOD_IN_TROUBLE_S):
            self._look_again()
        if self._master is None:
            raise upstream.ConnectionError("the master is not known")
        return self._master

    def _look_again(self) -> None:
        if self._complaint:
            self._refresh.soon()  # no need to wait for Sentinels that did not answer lately
            return
        with suppress(upstream.RedisError, OSError):
            self._refresh.wait()

    def _replaced(self, server: Server) -> bool:
        """Whether the Sentinels, asked now, name another master."""
        self._look_again()
        return self._master is not server

    def _look(self) -> None:
        """Take the newest of what the first half of the Sentinels says, and one more."""
        self._looked_at = time.monotonic()
        questions = [partial(self._ask, sentinel) for sentinel in self._sentinels]
        try:
            named = first_answers(questions, len(questions) // 2 + 1, self._timeout_s)
        except (upstream.RedisError, OSError) as error:
            self._complain(error)
            raise
        self._complaint = ""
        self._use(max(named).address)

    def _ask(self, sentinel: ConnectionPool) -> _Named:
        with redis.Redis(connection_pool=sentinel).pipeline(transaction=False) as pipe:
            for question in ("GET-MASTER-ADDR-BY-NAME", "MASTER"):
                pipe.execute_command("SENTINEL", question, self._service)  # type: ignore[no-untyped-call]
            address, about = pipe.execute(raise_on_error=False)
        if isinstance(address, Exception):
            raise address
        if address is None or isinstance(about, Exception):
            raise upstream.ConnectionError(f"no Sentinel knows a service {self._service!r}")
        facts: dict[bytes, bytes] = dict(zip(about[::2], about[1::2], strict=True))
        # the Sentinel that leads a failover names the new master before it counts the epoch
        leads = address != [facts[b"ip"], facts[b"port"]]
        return _Named(int(facts[b"config-epoch"]) + leads, _address(address))

    def _use(self, address: Address) -> None:
        if address == self._address:
            return
        old, self._address = self._master, address
        host, port = address
        self._master = Server(f"{host}:{port}", self._wiring, host=host, port=port)
        log.info("the master of %s is %s", self._service, self._master.name)
        if old is not None:
            old.drop()

    def _complain(self, error: Trouble) -> None:
        if str(error) != self._complaint:
            self._complaint = str(error)
            log.warning("the Sentinels name no master of %s: %s", self._service, error)


def _address(parts: list[Any]) -> Address:
    return parts[0].decode(), int(parts[1])
