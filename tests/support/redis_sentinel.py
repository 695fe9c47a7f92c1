"""A master, two replicas and three Sentinels that watch them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from redis.exceptions import RedisError, ResponseError

from tests.processes import wait_until
from tests.support.redis_node import RedisNode, Topology

SERVICE = "flights"
DOWN_AFTER_MS = 500


class RedisSentinels(Topology):
    """Three Sentinels, of which two must agree, and three servers.

    :param config: of each process, beside what it needs.
    :param tls: options of a client that speaks TLS; None for none.
    """

    kind = "sentinel"

    def __init__(
        self,
        program: str,
        config: Mapping[str, str] | None = None,
        tls: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(program)
        self._config, self._tls = dict(config or {}), tls
        first = self.node(self._config, tls=tls)
        replica = {"replicaof": f"127.0.0.1 {first.port}", **self._config}
        self.servers = [first, *(self.node(replica, tls=tls) for _ in range(2))]
        self.sentinels = self._sentinels(first)

    @property
    def url(self) -> str:
        """What ``FLIGHTSVC_REDIS_URL`` takes."""
        hosts = ",".join(sentinel.address for sentinel in self.sentinels)
        return f"{'rediss' if self._tls else 'redis'}+sentinel://{hosts}/{SERVICE}"

    @property
    def master(self) -> RedisNode:
        """The server that the Sentinels name now."""
        for sentinel in self.sentinels:
            try:
                port = sentinel.client().sentinel_get_master_addr_by_name(SERVICE)[1]
            except RedisError:
                continue
            return next(server for server in self.servers if server.port == port)
        raise AssertionError("no Sentinel answers")

    @property
    def replicas(self) -> list[RedisNode]:
        """The others."""
        master = self.master
        return [server for server in self.servers if server is not master]

    def master_of(self, _name: str) -> RedisNode:
        """The server that has a name."""
        return self.master

    def client(self) -> Any:
        """A plain client for looking from outside."""
        return self.master.client()

    def start(self) -> None:
        for server in self.servers:
            server.start()
        for server in self.servers:
            server.await_answer()
        wait_until(lambda: self._replicas_online(2))
        for sentinel in self.sentinels:
            sentinel.start()
        for sentinel in self.sentinels:
            sentinel.await_answer()
        wait_until(lambda: all(self._settled(sentinel) for sentinel in self.sentinels))

    def await_new_master(
        self, old: RedisNode, _name: str = "", within_s: float = 15.0
    ) -> RedisNode:
        """Wait until most Sentinels name another master."""

        def promoted() -> bool:
            named = [
                sentinel.client().sentinel_get_master_addr_by_name(SERVICE)[1]
                for sentinel in self.sentinels
            ]
            return bool(sum(port != old.port for port in named) >= 2)

        wait_until(promoted, within_s)
        return self.master

    def set_failover(self, happens: bool) -> None:
        """Whether a master that does not answer is replaced."""
        after_ms = DOWN_AFTER_MS if happens else 60_000
        for sentinel in self.sentinels:
            sentinel.client().sentinel_set(SERVICE, "down-after-milliseconds", after_ms)

    def step_down(self, _master: RedisNode) -> None:
        """Have a replica take over from a master that is well."""
        self.sentinels[0].client().execute_command("SENTINEL", "FAILOVER", SERVICE)

    def _replicas_online(self, number: int) -> bool:
        about = self.servers[0].client().info("replication")
        states = [about.get(f"slave{n}", {}).get("state") for n in range(number)]
        return all(state == "online" for state in states)

    def _settled(self, sentinel: RedisNode) -> bool:
        try:
            quorum = sentinel.client().execute_command("SENTINEL", "CKQUORUM", SERVICE)
        except ResponseError:
            return False
        about = sentinel.client().sentinel_master(SERVICE)
        alive = (int(about["num-slaves"]), about["flags"]) == (2, "master")
        return alive and bool(quorum.startswith(b"OK 3 "))

    def _sentinels(self, master: RedisNode) -> list[RedisNode]:
        """They know each other from the start: it would take them seconds to find out."""
        ids = [os.urandom(20).hex() for _ in range(3)]
        sentinels = [self.node(self._config, sentinel=True, tls=self._tls) for _ in ids]
        for sentinel, own in zip(sentinels, ids, strict=True):
            others = [
                f"known-sentinel {SERVICE} 127.0.0.1 {other.port} {id_}"
                for other, id_ in zip(sentinels, ids, strict=True)
                if id_ != own
            ]
            replicas = [
                f"known-replica {SERVICE} 127.0.0.1 {server.port}" for server in self.servers[1:]
            ]
            sentinel.configure(
                {
                    "sentinel": [
                        f"myid {own}",
                        f"monitor {SERVICE} 127.0.0.1 {master.port} 2",
                        f"down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}",
                        f"failover-timeout {SERVICE} 3000",
                        f"parallel-syncs {SERVICE} 2",
                        *replicas,
                        *others,
                    ]
                }
            )
        return sentinels
