"""A Redis Cluster: three masters and a replica of each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import redis
from redis.cluster import ClusterNode
from redis.crc import key_slot
from redis.exceptions import RedisError

from tests.processes import wait_until
from tests.support.redis_node import RedisNode, Topology, free_port

SLOTS = 16_384
#: a node that does not answer is replaced soon, and the others' slots are served meanwhile
CLUSTER = {
    "cluster-enabled": "yes",
    "cluster-config-file": "nodes",
    "cluster-node-timeout": "1000",
    "cluster-require-full-coverage": "no",
}


class RedisClusterServers(Topology):
    """Masters that share the slots evenly, and their replicas.

    :param masters: how many; each has a replica.
    :param config: of each node, beside what a cluster needs.
    :param tls: options of a client that speaks TLS; None for none.
    """

    kind = "cluster"

    def __init__(
        self,
        program: str,
        masters: int = 3,
        config: Mapping[str, str] | None = None,
        tls: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(program)
        number = 2 * masters
        ids = [os.urandom(20).hex() for _ in range(number)]
        buses = [free_port() for _ in range(number)]
        self._tls = tls
        for bus in buses:
            ports = {"cluster-port": str(bus), **({"tls-cluster": "yes"} if tls else {})}
            self.node({**CLUSTER, **ports, **(config or {})}, tls=tls)
        self.masters = masters
        for own in range(number):
            lines = [self._line(n, own, ids, buses) for n in range(number)]
            lines.append(f"vars currentEpoch {number} lastVoteEpoch 0")
            self.nodes[own].write("nodes", "\n".join(lines) + "\n")

    def _line(self, number: int, own: int, ids: list[str], buses: list[int]) -> str:
        """A node as all of them know it from the start: it would take them seconds to meet."""
        node, shard = self.nodes[number], number % self.masters
        is_master = number < self.masters
        role = "master" if is_master else "slave"
        words = [
            ids[number],
            f"{node.address}@{buses[number]}",
            f"myself,{role}" if number == own else role,
            "-" if is_master else ids[shard],
            f"0 0 {shard + 1} connected",
        ]
        if is_master:
            first, after = (SLOTS * n // self.masters for n in (shard, shard + 1))
            words.append(f"{first}-{after - 1}")
        return " ".join(words)

    @property
    def url(self) -> str:
        """What ``FLIGHTSVC_REDIS_URL`` takes: half of the nodes, the rest is learnt."""
        hosts = ",".join(node.address for node in self.nodes[: self.masters])
        return f"{'rediss' if self._tls else 'redis'}+cluster://{hosts}"

    def client(self) -> Any:
        """A plain client for looking from outside."""
        nodes = [ClusterNode("127.0.0.1", node.port) for node in self.nodes]
        tls = {"ssl": True, **self._tls} if self._tls else {}
        return redis.RedisCluster(startup_nodes=nodes, protocol=2, **tls)

    def master_of(self, name: str) -> RedisNode:
        """The node that has a name, as most of the others say."""
        slot = key_slot(name.encode())
        said: list[int] = []
        for node in self.nodes:
            try:
                slots = node.client(0.5).execute_command("CLUSTER", "SLOTS")
            except RedisError:
                continue
            said += [master[1] for first, last, master, *_ in slots if first <= slot <= last]
        port = max(set(said), key=said.count)
        return next(node for node in self.nodes if node.port == port)

    def start(self) -> None:
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            node.await_answer()
        wait_until(lambda: all(map(self._settled, self.nodes)), 20)

    def await_new_master(self, old: RedisNode, name: str, within_s: float = 15.0) -> RedisNode:
        """Wait until another node has a name of the old one's."""
        wait_until(lambda: self.master_of(name) is not old, within_s)
        return self.master_of(name)

    def set_failover(self, happens: bool) -> None:
        """Whether a master that does not answer is replaced."""
        self.set("cluster-replica-no-failover", "no" if happens else "yes")

    def step_down(self, master: RedisNode) -> None:
        """Have a replica take over from a master that is well."""
        self.replica_of(master).client().execute_command("CLUSTER", "FAILOVER")

    def replica_of(self, master: RedisNode) -> RedisNode:
        """A replica of a master."""
        about = master.client().info("replication")["slave0"]
        return next(node for node in self.nodes if node.port == about["port"])

    def _settled(self, node: RedisNode) -> bool:
        client = node.client()
        about, replication = client.cluster("info"), client.info("replication")
        return (
            about["cluster_state"] == "ok"
            and int(about["cluster_slots_ok"]) == SLOTS
            and int(about["cluster_known_nodes"]) == len(self.nodes)
            and replication.get("master_link_status", "up") == "up"
            and b"fail" not in client.execute_command("CLUSTER", "NODES")
        )
