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

#: Longest wait in seconds for a command that is under way when the store closes.
CLOSE_S = 1.0

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
        self._connections = connections
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

    def look(self, cursors: Mapping[str, str]) -> list[tuple[str, str | None, Entries]]:
        """What is in each stream now, without blocking.

        :param cursors: name of a stream to the id after which to read.
        :returns: for each, the last id that it ever gave (None where there is no such stream),
            then what can be read after the cursor.
        :raises StoreError: if Redis could not be asked.
        """
        try:
            with self._reads.pipeline(transaction=False) as pipe:
                for name, cursor in cursors.items():
                    # in this order: what the first line counts, the second must deliver
                    pipe.xinfo_stream(name)
                    pipe.xread({name: cursor})
                replies: list[Any] = pipe.execute(raise_on_error=False)
        except (upstream.RedisError, OSError) as error:
            raise self._counted(wrap(error)) from error
        return [
            (name, _last_id(info), _entries(found))
            for name, info, found in zip(cursors, replies[::2], replies[1::2], strict=True)
        ]

    def eviction_policy(self) -> str | None:
        """The server's ``maxmemory-policy``; None where it may not be read.

        :raises StoreError: if Redis could not be asked.
        """
        try:
            # not among the commands: what is asked once takes no place from the flights
            info = self._reads.info("memory")
        except upstream.ResponseError:
            return None
        except (upstream.RedisError, OSError) as error:
            raise wrap(error) from error
        return str(info.get("maxmemory_policy") or "") or None

    def close(self) -> None:
        """Close every connection, when the commands that are under way have ended."""
        # one that is closed under a reading greenlet raises what no caller expects
        held = sum(self._places.acquire(timeout=CLOSE_S) for _ in range(self._connections))
        for _ in range(held):
            self._places.release()
        for client in (self._commands, self._reads):
            if isinstance(client, RedisCluster):
                client.close()
            else:  # its own close() leaves a pool alone that was handed to it
                client.connection_pool.disconnect()

    def _counted(self, error: StoreError) -> StoreError:
        self._metrics.count(REDIS_ERRORS, kind=error.kind)
        return error


def _last_id(info: Any) -> str | None:
    if isinstance(info, Exception):
        return None
    last = info["last-generated-id"]
    return last.decode() if isinstance(last, bytes) else str(last)


def _entries(found: Any) -> Entries:
    if isinstance(found, Exception) or not found:
        return []
    entries: Entries = found[0][1]
    return entries
