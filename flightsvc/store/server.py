"""One Redis server of however many there are: its connections, and how many may be busy."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import gevent
import redis
import redis.exceptions as upstream
from gevent.lock import BoundedSemaphore
from redis.backoff import NoBackoff
from redis.client import Pipeline
from redis.connection import Connection, ConnectionPool, SSLConnection, UnixDomainSocketConnection
from redis.retry import Retry

from flightsvc.settings import Settings
from flightsvc.settings.redis_url import RedisUrl

T = TypeVar("T")
#: what is done with a server
Job = Callable[[redis.Redis], T]

#: Longest time in seconds that one blocking read stays in Redis.
BLOCK_S = 0.5
#: Longest wait in seconds for commands that are under way when a server is left.
CLOSE_S = 1.0
#: Time in seconds that a blocking read may take beyond that, besides ``redis_timeout_ms``.
MARGIN_S = 0.25


@dataclass(frozen=True)
class Wiring:
    """How connections are made, and how many.

    :param options: of every connection, but for where it leads and its timeout.
    :param timeout_s: of connecting, and of every command that answers at once.
    :param commands: commands that may be under way at once, a server.
    :param reads: blocking reads that may be under way at once, a server.
    """

    options: dict[str, Any]
    timeout_s: float
    commands: int
    reads: int

    @classmethod
    def of(cls, settings: Settings, url: RedisUrl, *, reads: int) -> Wiring:
        """As the settings say."""
        return cls(
            connection_options(url),
            settings.redis_timeout_ms / 1000,
            settings.redis_connections,
            reads,
        )

    def pool(self, size: int, timeout_s: float, **where: Any) -> ConnectionPool:
        """Connections to a server; nothing is ever sent twice over them."""
        return ConnectionPool(
            max_connections=size,
            socket_timeout=timeout_s,
            socket_connect_timeout=self.timeout_s,
            retry=Retry(NoBackoff(), 0),
            **self.options,
            **where,
        )


def connection_options(url: RedisUrl, *, sentinel: bool = False) -> dict[str, Any]:
    """What every connection is made with, but for where it leads.

    :param sentinel: the connections are to the Sentinels, who have users of their own.
    """
    given = dict(url.options)
    users = {name: given.pop(f"sentinel_{name}", None) for name in ("username", "password")}
    if not sentinel:
        users = {"username": url.username or None, "password": url.password or None}
        users["client_name"] = given.get("client_name")
    given.pop("client_name", None)
    options: dict[str, Any] = {**given, **users, "db": 0 if sentinel else url.db}
    if "ssl_check_hostname" in options:
        options["ssl_check_hostname"] = options["ssl_check_hostname"] == "true"
    plain = UnixDomainSocketConnection if url.kind == "unix" else Connection
    return options | {
        "connection_class": SSLConnection if url.tls else plain,
        "protocol": 2,
        "driver_info": None,
        "decode_responses": False,
    }


class Server:
    """The connections to one server; none is made before it is used.

    :param name: names it in logs and among others; shows no password.
    :param where: ``host`` and ``port``, or ``path``.
    """

    def __init__(self, name: str, wiring: Wiring, **where: Any) -> None:
        self.name = name
        # waiting for a free connection is no failure: the pool itself would refuse
        self._places = BoundedSemaphore(wiring.commands)
        self._busy = 0
        self._commands = wiring.pool(wiring.commands, wiring.timeout_s, **where)
        read_timeout_s = BLOCK_S + wiring.timeout_s + MARGIN_S
        self._reads = wiring.pool(wiring.reads, read_timeout_s, **where)
        self._clients = _clients(self._commands), _clients(self._reads)
        self._ended = False

    def command(self, job: Job[T], *, asking: bool = False) -> T:
        """Do something that answers at once.

        :param asking: the server is about to get the slot from another.
        """
        with self._places:
            self._busy += 1
            try:
                return self._run(job, self._clients[0][asking])
            finally:
                self._busy -= 1
                if self._ended:
                    self._commands.disconnect(inuse_connections=False)

    def read(self, job: Job[T], *, asking: bool = False) -> T:
        """Do something that may block for :data:`BLOCK_S`."""
        return self._run(job, self._clients[1][asking])

    def drop(self) -> None:
        """No longer the server to ask: end blocking reads now, commands when they are answered."""
        self._ended = True
        self._reads.disconnect()
        self._commands.disconnect(inuse_connections=False)

    def close(self) -> None:
        """Close every connection, when the commands that are under way have ended."""
        until = time.monotonic() + CLOSE_S
        while self._busy and time.monotonic() < until:
            gevent.sleep(0.01)
        self._ended = True
        self._reads.disconnect()
        self._commands.disconnect()

    def _run(self, job: Job[T], client: redis.Redis) -> T:
        try:
            return job(client)
        except (AttributeError, ValueError) as error:
            if not self._ended:
                raise
            # what the library says where a connection is closed under a greenlet that uses it
            raise upstream.ConnectionError("the connection was closed") from error


def _clients(pool: ConnectionPool) -> tuple[redis.Redis, redis.Redis]:
    """A plain client, and one for a slot that is on its way."""
    return redis.Redis(connection_pool=pool), _Asking(connection_pool=pool)


class _Asking(redis.Redis):
    """Says ASKING before each command, which holds for one command only."""

    def pipeline(self, transaction: bool = False, shard_hint: str | None = None) -> Pipeline:
        callbacks: Any = self.response_callbacks
        return _AskingPipeline(self.connection_pool, callbacks, transaction, shard_hint)

    def execute_command(self, *args: Any, **options: Any) -> Any:
        with self.pipeline() as pipe:
            pipe.execute_command(*args, **options)  # type: ignore[no-untyped-call]
            return pipe.execute()[0]


class _AskingPipeline(Pipeline):
    def execute_command(self, *args: Any, **options: Any) -> Any:
        super().execute_command("ASKING")  # type: ignore[no-untyped-call]
        return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        replies: list[Any] = super().execute(raise_on_error)
        return replies[1::2]
