"""Redis Cluster: a slot is carried from one master to another, name by name."""

from __future__ import annotations

from collections.abc import Callable

import gevent
from redis.crc import key_slot

from flightsvc.flight import FlightKey
from flightsvc.store import Names, Store
from tests.flight.conftest import Worker
from tests.flight.flying import Model, ask, await_following, values
from tests.support.redis_cluster import RedisClusterServers
from tests.support.redis_node import RedisNode
from tests.topology.asking import SHARDS, Asker

STEADY = {"heartbeat_ms": 100, "redis_timeout_ms": 1_500, "takeover_detect_ms": 6_000}


class Move:
    """A slot on its way from one master to another."""

    def __init__(self, servers: RedisClusterServers, name: str) -> None:
        self.slot = key_slot(name.encode())
        self._servers = servers
        self._from = servers.master_of(name)
        masters = servers.nodes[: servers.masters]
        self._to = next(node for node in masters if node is not self._from)
        self._ids = {n.port: n.client().execute_command("CLUSTER", "MYID") for n in masters}

    def begin(self) -> None:
        """From here on, new names are made at its goal."""
        self._set(self._to, "IMPORTING", self._ids[self._from.port])
        self._set(self._from, "MIGRATING", self._ids[self._to.port])

    def carry(self) -> None:
        """Carry all names over."""
        source = self._from.client()
        names = source.execute_command("CLUSTER", "GETKEYSINSLOT", self.slot, 1_000)
        if names:
            words = ["127.0.0.1", self._to.port, "", 0, 5_000, "KEYS", *names]
            source.execute_command("MIGRATE", *words)

    def end(self) -> None:
        """All are told of it."""
        for node in (self._to, self._from, *self._servers.nodes[: self._servers.masters]):
            self._set(node, "NODE", self._ids[self._to.port])

    def _set(self, node: RedisNode, *words: str | bytes) -> None:
        node.client().execute_command("CLUSTER", "SETSLOT", self.slot, *words)


def test_an_empty_slot_on_its_way_is_used_at_its_goal(
    own_cluster: RedisClusterServers, store: Callable[..., Store]
) -> None:
    asker = Asker(store(own_cluster.url))
    asker.ask(1)
    move = Move(own_cluster, asker.name(0))
    move.begin()
    # the script is not known there yet, and what is made there is found there
    entry = asker.ask(0)
    assert asker.store.look({asker.name(0): "0-0"})[0][:2] == (asker.name(0), entry.decode())
    ((stream, entries),) = asker.store.read({asker.name(0): "0-0"})
    assert (stream, entries[0][0]) == (asker.name(0), entry)
    move.carry()
    move.end()
    assert asker.ask(0) > entry


def test_a_slot_moves_under_a_flight(
    worker: Worker, own_cluster: RedisClusterServers, namespace: str
) -> None:
    one, two = (worker(own_cluster.url, **STEADY) for _ in range(2))
    key, model = FlightKey("scoring", "x"), Model(held=True)
    callers = ask(one, key, model, 2)
    assert model.began.wait(5)
    callers += ask(two, key, model, 5)
    await_following(two)
    move = Move(own_cluster, Names(namespace, SHARDS).flight(key.flight_id)["meta"])
    move.begin()
    gevent.sleep(0.3)  # a few heartbeats and a look
    move.carry()
    gevent.sleep(0.3)
    move.end()
    gevent.sleep(0.3)
    model.let_go()
    assert values(callers) == [{"call": 1}]
    assert model.calls == 1
    assert worker(own_cluster.url, **STEADY).run(key, model).role == "replay"
