"""What the rest of flightsvc may ask of Redis, and one class of error for all that goes wrong.

Commands share a few connections, so that any number of callers costs a worker the same;
waiting for a free one is not a failure. Blocking reads have connections of their own, whose
timeout lies above the blocking time. Nothing is ever sent twice by the client library: who may
ask again, and with what token, is for the protocol to say.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import redis
import redis.exceptions as upstream

from flightsvc.metrics import REDIS_ERRORS, REDIS_TIME, Metrics
from flightsvc.store import scripts
from flightsvc.store.errors import StoreError, wrap
from flightsvc.store.router import Router
from flightsvc.store.scripts import Verb
from flightsvc.store.server import BLOCK_S as BLOCK_S

#: the oldest Redis whose scripts may have flags
OLDEST = "7.0"

Fields = dict[bytes, bytes]
Entries = list[tuple[bytes, Fields]]

#: Replies within a look that say that this server is not the one to ask.
_ELSEWHERE = (upstream.AskError, upstream.TryAgainError, upstream.ClusterDownError)


class Store:
    """Scripts, blocking reads and small questions.

    :param router: the way to the server of each name.
    :param metrics: where command times and errors are counted.
    """

    def __init__(self, router: Router, metrics: Metrics) -> None:
        self._router = router
        self._metrics = metrics

    @property
    def one_slot_a_read(self) -> bool:
        """Whether a blocking read may name streams of one shard only."""
        return self._router.one_slot_a_read

    def server_of(self, name: str) -> str:
        """The server that has a name now; empty where there is only one, or it is not known."""
        return self._router.server_of(name)

    def run(self, verb: Verb, keys: Sequence[str], args: Sequence[str | bytes | int]) -> Any:
        """Run a script.

        :returns: its reply, strings as bytes.
        :raises StoreError: if it was refused, or its reply did not come.
        """

        def job(client: redis.Redis) -> Any:
            began = time.perf_counter()
            try:
                return _script(client, verb, keys, args)
            finally:
                self._metrics.time(REDIS_TIME, time.perf_counter() - began, verb=verb.name)

        try:
            return self._router.command(keys[0], job)
        except (upstream.RedisError, OSError) as error:
            raise self._counted(wrap(error)) from error

    def read(self, cursors: Mapping[str, str]) -> list[tuple[str, Entries]]:
        """Block until one of the streams has entries after its cursor, at most ``BLOCK_S``.

        :param cursors: name of a stream to the id after which to read.
        :raises StoreError: if the connection broke; nothing is lost, the cursors still stand.
        """
        try:
            streams: dict[Any, Any] = dict(cursors)
            reply: Any = self._router.read(
                next(iter(cursors)),
                lambda client: client.xread(streams, count=256, block=int(BLOCK_S * 1000)),
            )
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

        def job(client: redis.Redis) -> list[Any]:
            with client.pipeline(transaction=False) as pipe:
                for name, cursor in cursors.items():
                    # in this order: what the first line counts, the second must deliver
                    pipe.xinfo_stream(name)
                    pipe.xread({name: cursor})
                found: list[Any] = pipe.execute(raise_on_error=False)
            for reply in found:
                if isinstance(reply, _ELSEWHERE):
                    raise reply
            return found

        try:
            replies = self._router.read(next(iter(cursors)), job)
        except (upstream.RedisError, OSError) as error:
            raise self._counted(wrap(error)) from error
        return [
            (name, _last_id(info), _entries(found))
            for name, info, found in zip(cursors, replies[::2], replies[1::2], strict=True)
        ]

    def complaints(self) -> list[str]:
        """What makes the servers unfit, a sentence each; nothing where they may not tell.

        :raises StoreError: if Redis could not be asked.
        """
        found: dict[str, None] = {}
        try:
            for server in self._router.servers():
                # not among the commands: what is asked once takes no place from the flights
                about: Any = server.read(lambda client: client.info())
                found |= dict.fromkeys(_complaints(about))
        except upstream.ResponseError:
            pass
        except (upstream.RedisError, OSError) as error:
            raise wrap(error) from error
        return list(found)

    def close(self) -> None:
        """Close every connection, when the commands that are under way have ended."""
        self._router.close()

    def _counted(self, error: StoreError) -> StoreError:
        self._metrics.count(REDIS_ERRORS, kind=error.kind)
        return error


def _complaints(about: dict[str, Any]) -> Iterator[str]:
    """What is wrong with a server, by its INFO."""
    version = str(about.get("redis_version", OLDEST))
    if _parts(version) < _parts(OLDEST):
        yield (
            f"Redis {version} is too old: its scripts do not know flags, so heartbeats fail and "
            f"running calls are repeated; use Redis {OLDEST} or newer, or Valkey"
        )
    policy = about.get("maxmemory_policy") or "noeviction"
    if policy != "noeviction":
        yield (
            f"Redis's maxmemory-policy is {policy}: a full server would evict flights in the air, "
            f"and their calls would be repeated; set it to noeviction"
        )


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")[:2] if part.isdigit()]


def _script(
    client: redis.Redis, verb: Verb, keys: Sequence[str], args: Sequence[str | bytes | int]
) -> Any:
    words: Any = (*keys, *args)
    try:
        return client.evalsha(scripts.sha1(verb.name), len(keys), *words)
    except upstream.NoScriptError:
        # not EVALSHA after SCRIPT LOAD: a flush may come between the two
        source: Any = scripts.source(verb.name)
        return client.eval(source, len(keys), *words)


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
