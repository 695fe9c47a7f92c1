"""Small questions to a store, and looking from outside at what came of them."""

from __future__ import annotations

import os
from typing import Any

import gevent

from flightsvc.flight import verbs
from flightsvc.store import Names, Store, StoreError
from tests.support.redis_node import RedisNode

SHARDS = 16


class Asker:
    """Somebody who asks a store: each question is a small write about a shard."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.names = Names("t-" + os.urandom(4).hex(), SHARDS)

    def name(self, shard: int = 0) -> str:
        """What is written."""
        return self.names.wake("asker", shard)

    def ask(self, shard: int = 0) -> bytes:
        """Ask once; its error is raised."""
        entry: bytes = self.store.run(verbs.WAKE, [self.name(shard)], [60_000])
        return entry

    def kind(self, shard: int = 0) -> str:
        """Ask once; the kind of its error, or ``ok``."""
        try:
            self.ask(shard)
        except StoreError as error:
            return error.kind
        return "ok"

    def kinds(self, times: int, shard: int = 0) -> list[str]:
        """Ask often, all at once."""
        asking = [gevent.spawn(self.kind, shard) for _ in range(times)]
        gevent.joinall(asking)
        return [str(one.value) for one in asking]


def calls(node: RedisNode, command: str) -> int:
    """How often a server has carried out a command."""
    about: dict[str, Any] = node.client().info("commandstats")
    return int(about.get(f"cmdstat_{command}", {}).get("calls", 0))


def connections(node: RedisNode, name: str) -> list[str]:
    """The open connections with a name: the last command of each."""
    return [client["cmd"] for client in node.client().client_list() if client["name"] == name]
