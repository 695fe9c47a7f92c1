"""What the rest of flightsvc may ask of Redis, and one class of error for all that goes wrong.

Commands share a few connections, so that any number of callers costs a worker the same;
waiting for a free one is not a failure. Blocking reads have connections of their own, whose
timeout lies above the blocking time. Nothing is ever sent twice by the client library: who may
ask again, and with what token, is for the protocol to say.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import redis
import redis.exceptions as upstream
from gevent.lock import BoundedSemaphore
from redis.cluster import RedisCluster

from flightsvc.metrics import REDIS_ERRORS, REDIS_TIME, Metrics
from flightsvc.store import scripts
from flightsvc.store.errors import StoreError, wrap
from flightsvc.store.scripts import Verb

#: Longest time in seconds that one blocking read stays in Redis.
BLOCK_S = 0.5

Fields = dict[bytes, bytes]
Entries = list[tuple[bytes, Fields]]
Client = redis.Redis | RedisCluster


class Store:
    """Scripts, blocking reads and small questions, over two clients of the same Redis.

    :param commands: for everything that answers at once.
    :param reads: for blocking reads; its socket timeout lies above ``BLOCK_S``.
    :param connections: how many commands may be under way at once.
    :param one_slot_a_read: a blocking read may name streams of one shard only.
    :param metrics: where command times and errors are counted.
    """

    def __init__(
        self,
        commands: Client,
        reads: Client,
        *,
        connections: int,
        one_slot_a_read: bool,
        metrics: Metrics,
    ) -> None:
        self._commands = commands
        self._reads = reads
        self._places = BoundedSemaphore(connections)
        self.one_slot_a_read = one_slot_a_read
        self._metrics = metrics

    def run(self, verb: Verb, keys: Sequence[str], args: Sequence[str | bytes | int]) -> Any:
        """Run a script.

        :returns: its reply, strings as bytes.
        :raises StoreError: if it was refused, or its reply did not come.
        """
        words: Any = (*keys, *args)
        with self._places:
            began = time.perf_counter()
            try:
                try:
                    return self._commands.evalsha(scripts.sha1(verb.name), len(keys), *words)
                except upstream.NoScriptError:
                    # not EVALSHA after SCRIPT LOAD: a flush may come between the two
                    source: Any = scripts.source(verb.name)
                    return self._commands.eval(source, len(keys), *words)
            except (upstream.RedisError, OSError) as error:
                raise self._counted(wrap(error)) from error
            finally:
                self._metrics.time(REDIS_TIME, time.perf_counter() - began, verb=verb.name)

    def ping(self) -> None:
        """Ask for a sign of life.

        :raises StoreError: if there is none.
        """
        with self._places:
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
        self._commands.close()
        self._reads.close()

    def _counted(self, error: StoreError) -> StoreError:
        self._metrics.count(REDIS_ERRORS, kind=error.kind)
        return error


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
