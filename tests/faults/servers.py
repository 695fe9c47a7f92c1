"""A Redis server that takes its time to load its data, and one that throws data away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gevent

from tests.processes import ask, wait_until
from tests.support.redis_server import RedisServer

_KEYS = 2_000


class TroubledServer(RedisServer):
    """One server, and what can be wrong with it while it answers."""

    @property
    def loading(self) -> bool:
        """Whether it says that it loads its data."""
        try:
            return ask(self.socket_path, "EXISTS x").startswith(b"-LOADING")
        except OSError:
            return False

    @contextmanager
    def reloading(self, seconds: float) -> Iterator[None]:
        """Restart it with what it holds now; while the block runs it answers LOADING.

        :param seconds: how long it loads; the block must be done by then.
        """
        admin: Any = self.client()
        with admin.pipeline(transaction=False) as pipe:
            for number in range(_KEYS):
                pipe.set(f"heavy:{number}", b"x" * 100, px=600_000)
            pipe.execute()
        admin.save()
        self.kill()
        usual = self._options
        slowly = ("--key-load-delay", str(int(seconds / _KEYS * 1e6)))
        self._options = (*usual, *slowly, "--loading-process-events-interval-bytes", "1024")
        starting = gevent.spawn(self.start)
        try:
            wait_until(lambda: self.loading)
            yield
            assert self.loading, f"not done within {seconds} s"
        finally:
            self._options = usual
            starting.get()

    @contextmanager
    def full(self) -> Iterator[None]:
        """While the block runs it has no memory left, and evicts nothing."""
        admin: Any = self.client()
        admin.config_set("maxmemory-policy", "noeviction")
        admin.config_set("maxmemory", "1mb")
        try:
            yield
        finally:
            admin.config_set("maxmemory", "0")

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """While the block runs it is a replica, of a master that is not there."""
        admin: Any = self.client()
        admin.replicaof("127.0.0.1", "1")
        try:
            yield
        finally:
            admin.replicaof("no", "one")

    def evict(self, name: str) -> None:
        """Fill it until it has thrown a key away."""
        admin: Any = self.client()
        admin.config_set("maxmemory-policy", "allkeys-lru")
        admin.config_set("maxmemory", admin.info("memory")["used_memory"] + 2_000_000)
        try:
            while admin.exists(name):
                with admin.pipeline(transaction=False) as pipe:
                    for number in range(400):
                        pipe.set(f"junk:{os.urandom(4).hex()}:{number}", b"x" * 20_000, px=60_000)
                    pipe.execute()
        finally:
            admin.config_set("maxmemory", "0")
            admin.config_set("maxmemory-policy", "noeviction")
