"""One Redis server (or Valkey): two pools, scripts, and one class of error.

Commands share a small blocking pool, so that any number of callers costs a worker the same
few connections; waiting for a free one is not a failure. Blocking reads have a connection of
their own, whose timeout lies above the blocking time. Nothing is ever sent twice by the
client library: who may ask again, and with what token, is for the protocol to say.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import redis
import redis.exceptions as upstream
from redis.backoff import NoBackoff
from redis.commands.core import Script
from redis.connection import BlockingConnectionPool, ConnectionPool, parse_url
from redis.retry import Retry

from flightsvc.errors import SettingsError
from flightsvc.metrics import REDIS_ERRORS, REDIS_TIME, Metrics
from flightsvc.store import scripts
from flightsvc.store.errors import StoreError, wrap
from flightsvc.store.scripts import Verb

#: Longest time in seconds that one blocking read stays in Redis.
BLOCK_S = 0.5

Fields = dict[bytes, bytes]
Entries = list[tuple[bytes, Fields]]


def _connection_options(url: str, timeout_s: float) -> dict[str, Any]:
    """What every connection is made with; ours win over the URL's query string."""
    try:
        options: dict[str, Any] = dict(parse_url(url))  # type: ignore[no-untyped-call]
    except ValueError as error:
        raise SettingsError(f"FLIGHTSVC_REDIS_URL is not a Redis URL: {error}") from None
    for ours in ("max_connections", "timeout", "decode_responses", "retry_on_timeout"):
        options.pop(ours, None)
    return options | {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "driver_info": None,
        "decode_responses": False,
    }


class RedisStore:
    """Commands and blocking reads against one server.

    :param url: ``redis://``, ``rediss://`` or ``unix://``.
    :param timeout_s: longest wait for the answer to a command, in seconds.
    :param connections: size of the pool for commands; one connection more reads.
    :param metrics: where command times and errors are counted.
    :raises SettingsError: if the URL cannot be read.
    """

    def __init__(self, url: str, *, timeout_s: float, connections: int, metrics: Metrics) -> None:
        self._metrics = metrics
        commands = BlockingConnectionPool(  # type: ignore[no-untyped-call]
            max_connections=connections, timeout=None, **_connection_options(url, timeout_s)
        )
        reads = ConnectionPool(
            max_connections=2, **_connection_options(url, BLOCK_S + max(timeout_s, 0.25))
        )
        self._commands = redis.Redis(connection_pool=commands)
        self._reads = redis.Redis(connection_pool=reads)
        self._scripts: dict[str, Script] = {}

    def run(self, verb: Verb, keys: Sequence[str], args: Sequence[str | bytes | int]) -> Any:
        """Run a script.

        :returns: its reply, strings as bytes.
        :raises StoreError: if it was refused, or its reply did not come.
        """
        script = self._scripts.get(verb.name)
        if script is None:
            script = self._commands.register_script(scripts.source(verb.name))
            self._scripts[verb.name] = script
        began = time.perf_counter()
        try:
            return script(keys=keys, args=args)
        except (upstream.RedisError, OSError) as error:
            raise self._counted(wrap(error)) from error
        finally:
            self._metrics.time(REDIS_TIME, time.perf_counter() - began, verb=verb.name)

    def ping(self) -> None:
        """Ask for a sign of life.

        :raises StoreError: if there is none.
        """
        try:
            self._commands.ping()
        except (upstream.RedisError, OSError) as error:
            raise wrap(error) from error

    def read(self, cursors: Mapping[str, str]) -> list[tuple[str, Entries]]:
        """Block until one of the streams has entries after its cursor, at most ``BLOCK_S``.

        :param cursors: name of a stream to the id after which to read.
        :raises StoreError: if the connection broke; nothing is lost, the cursors still stand.
        """
        try:
            streams: dict[Any, Any] = dict(cursors)
            reply: Any = self._reads.xread(streams, count=256, block=int(BLOCK_S * 1000))
        except (upstream.RedisError, OSError) as error:
            raise self._counted(wrap(error)) from error
        return [(name.decode(), entries) for name, entries in reply or ()]

    def last_ids(self, streams: Sequence[str]) -> list[str | None]:
        """The last id that each stream ever gave, or None where there is no such stream.

        :raises StoreError: if Redis could not be asked.
        """
        try:
            with self._reads.pipeline(transaction=False) as pipe:
                for name in streams:
                    pipe.xinfo_stream(name)
                replies = pipe.execute(raise_on_error=False)
        except (upstream.RedisError, OSError) as error:
            raise self._counted(wrap(error)) from error
        return [
            None if isinstance(reply, Exception) else _text(reply["last-generated-id"])
            for reply in replies
        ]

    def eviction_policy(self) -> str | None:
        """The server's ``maxmemory-policy``; None where it may not be read.

        :raises StoreError: if Redis could not be asked.
        """
        try:
            info = self._commands.info("memory")
        except upstream.ResponseError:
            return None
        except (upstream.RedisError, OSError) as error:
            raise wrap(error) from error
        return str(info.get("maxmemory_policy") or "") or None

    def close(self) -> None:
        """Close every connection."""
        self._commands.connection_pool.disconnect()
        self._reads.connection_pool.disconnect()

    def _counted(self, error: StoreError) -> StoreError:
        self._metrics.count(REDIS_ERRORS, kind=error.kind)
        return error


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
