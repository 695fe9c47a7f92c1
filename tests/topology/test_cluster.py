"""Redis Cluster: every shard by itself, slots that move, nodes that freeze."""

from __future__ import annotations

import time
from collections.abc import Callable

import gevent
import pytest

from flightsvc.errors import CallFailed, Overloaded
from flightsvc.flight import FlightContext, FlightKey
from flightsvc.store import Names, Store, StoreError
from tests.flight.conftest import Worker
from tests.flight.flying import Caller, Model, ask, await_following, count, values
from tests.processes import wait_until
from tests.support.redis_cluster import RedisClusterServers
from tests.support.redis_node import RedisNode
from tests.support.redis_sentinel import RedisSentinels
from tests.topology.asking import SHARDS, Asker, calls, connections

#: a time-out that nobody can mistake for a slow machine
PLAIN_MS = 1_500
STEADY = {"heartbeat_ms": 100, "redis_timeout_ms": PLAIN_MS, "takeover_detect_ms": 6_000}


def keys_on(node: RedisNode, servers: RedisClusterServers, namespace: str) -> list[FlightKey]:
    """Questions whose flights a node has."""
    names = Names(namespace, SHARDS)
    keys = (FlightKey("scoring", "q", number) for number in range(60))
    return [k for k in keys if servers.master_of(names.flight(k.flight_id)["meta"]) is node]


def test_a_frozen_node_holds_up_its_own_shards_only(
    worker: Worker, own_cluster: RedisClusterServers, namespace: str
) -> None:
    # given a node that freezes, and is not replaced
    own_cluster.set_failover(False)
    one, two = (worker(own_cluster.url, **STEADY) for _ in range(2))
    frozen, well = own_cluster.nodes[:2]
    hit, spared = (keys_on(node, own_cluster, namespace) for node in (frozen, well))
    for flights in (one, two):
        values([Caller(flights, FlightKey("scoring", "warm", n), Model()) for n in range(40)])
    frozen.freeze()

    # when questions of its shards and of others come at once
    lost = [Caller(one, key, Model()) for key in hit]
    began = time.monotonic()
    kept = [Caller(flights, key, Model(takes_s=0.05)) for key in spared for flights in (one, two)]

    # then the others are coordinated as ever, and wait for nothing
    assert {caller.result().role for caller in kept} <= {"owner", "follower", "replay"}
    assert max(caller.answered_at for caller in kept) - began < PLAIN_MS / 1000
    assert sum(count(flights, "flight.calls.scoring") for flights in (one, two)) >= len(spared)
    # its own wait for it once, all together, and then no more
    assert {caller.result().role for caller in lost} == {"local"}
    assert max(caller.took_s for caller in lost) < 2 * PLAIN_MS / 1000 + 1
    began = time.monotonic()
    later = [Caller(one, key, Model(), replay=False) for key in hit]
    assert {caller.result().role for caller in later} == {"local"}
    assert time.monotonic() - began < PLAIN_MS / 1000
    assert one.coordination == "degraded"
    # and when it goes on, so does its coordination
    frozen.thaw()
    wait_until(lambda: one.coordination == "ok", 5)
    assert one.run(hit[0], Model(), replay=False).role != "local"


def test_heartbeats_of_other_shards_go_on_while_a_node_is_frozen(
    worker: Worker, own_cluster: RedisClusterServers, namespace: str
) -> None:
    own_cluster.set_failover(False)
    one = worker(own_cluster.url, heartbeat_ms=100)
    frozen, well = own_cluster.nodes[:2]
    model = Model(held=True)
    keys = [keys_on(node, own_cluster, namespace)[0] for node in (frozen, well)]
    callers = [Caller(one, key, model) for key in keys]
    wait_until(lambda: model.calls == 2)
    frozen.freeze()
    for _ in range(5):
        gevent.sleep(0.3)
        view = one.inspect(keys[1].flight_id)
        assert view is not None
        assert view.heartbeat_age_ms < 1_500
    frozen.thaw()
    model.let_go()
    assert [caller.result().role for caller in callers] == ["owner", "owner"]


def test_everything_that_flights_do_stays_in_one_slot(
    worker: Worker, own_cluster: RedisClusterServers
) -> None:
    # given flights of every kind, on all shards
    one, two = (worker(own_cluster.url, **STEADY) for _ in range(2))

    def full(ctx: FlightContext) -> None:
        raise Overloaded()

    for number in range(2 * SHARDS):
        key = FlightKey("scoring", number)
        model = Model(held=True)
        callers = ask(one, key, model)
        assert model.began.wait(5)
        callers += ask(two, key, model)
        await_following(two, times=number + 1)
        model.let_go()
        assert values(callers) == [{"call": 1}]
        assert worker(own_cluster.url, **STEADY).run(key, Model()).role == "replay"
        assert isinstance(
            Caller(one, key, Model(error=ValueError()), replay=False).error(), CallFailed
        )
        assert isinstance(Caller(one, key, full, queued=True, replay=False).error(), Exception)
        assert two.inspect(key.flight_id) is not None
    # then no node was asked about names of several slots, or of a slot that it has not
    for node in own_cluster.nodes:
        refused = set(node.client().info("errorstats")) - {"errorstat_NOSCRIPT"}
        assert refused & {"errorstat_CROSSSLOT", "errorstat_MOVED"} == set()


def test_a_worker_keeps_few_connections_to_each_node(
    worker: Worker, own_cluster: RedisClusterServers, namespace: str
) -> None:
    # given a worker that follows flights on all shards, three callers each
    one = worker(own_cluster.url, **STEADY)
    two = worker(f"{own_cluster.url}?client_name={namespace}", **STEADY)
    model = Model(held=True)
    number = 10 * SHARDS
    keys = [FlightKey("scoring", part) for part in range(number)]
    callers = [Caller(one, key, model) for key in keys]
    wait_until(lambda: model.calls == number)
    callers += [caller for key in keys for caller in ask(two, key, model, 3)]
    await_following(two, times=number)
    gevent.sleep(1)  # looks at all streams, and heartbeats

    # then it reads over one connection a shard, and sends commands over a few to each master
    found = [connections(node, namespace) for node in own_cluster.nodes]
    reads = [[cmd for cmd in node if cmd in ("xread", "xinfo|stream")] for node in found]
    assert sum(map(len, reads)) == SHARDS
    assert all(len(node) - len(read) <= 4 for node, read in zip(found, reads, strict=True))
    assert found[own_cluster.masters :] == [[]] * own_cluster.masters
    model.let_go()
    for caller in callers:
        caller.result()
    assert model.calls == number


# -- nodes that come and go -------------------------------------------------------------------


def test_a_cluster_that_is_absent_at_the_start_may_come_later(
    worker: Worker, own_cluster: RedisClusterServers
) -> None:
    for node in own_cluster.nodes:
        node.kill()
    one = worker(own_cluster.url)
    assert one.run(FlightKey("scoring", 1), Model()).role == "local"
    assert one.coordination == "degraded"
    own_cluster.start()
    wait_until(lambda: one.coordination == "ok")
    assert one.run(FlightKey("scoring", 2), Model()).role == "owner"


def test_one_node_of_the_url_is_enough(
    redis_cluster: RedisClusterServers, store: Callable[..., Store]
) -> None:
    replica = redis_cluster.nodes[-1].address
    for hosts in (replica, f"127.0.0.1:1,{replica}"):
        asker = Asker(store(f"redis+cluster://{hosts}"))
        assert [asker.kind(shard) for shard in range(SHARDS)] == ["ok"] * SHARDS


def test_frozen_nodes_are_waited_for_once_by_all(
    own_cluster: RedisClusterServers, store: Callable[..., Store]
) -> None:
    own_cluster.set_failover(False)
    for node in own_cluster.nodes:
        node.freeze()
    asker = Asker(store(own_cluster.url, redis_timeout_ms=400))
    began = time.monotonic()
    assert set(asker.kinds(100)) == {"timeout"}
    assert time.monotonic() - began < 2
    for node in own_cluster.nodes:
        node.thaw()
    wait_until(lambda: asker.kind() == "ok", 5)
    assert max(calls(node, "cluster|slots") for node in own_cluster.nodes) < 20


def test_a_shard_without_a_master_costs_the_others_nothing(
    worker: Worker, own_cluster: RedisClusterServers, namespace: str
) -> None:
    # given a cluster that needs no full coverage, and a shard that is lost whole
    lost, well = own_cluster.nodes[:2]
    hit, spared = (keys_on(node, own_cluster, namespace) for node in (lost, well))
    one = worker(own_cluster.url, **STEADY)
    own_cluster.replica_of(lost).kill()
    lost.kill()
    assert one.run(hit[0], Model()).role == "local"
    assert [one.run(key, Model()).role for key in spared] == ["owner"] * len(spared)


def test_a_server_that_is_no_cluster_is_named_in_the_log(
    redis_sentinels: RedisSentinels, store: Callable[..., Store], caplog: pytest.LogCaptureFixture
) -> None:
    server = redis_sentinels.servers[0].address
    assert Asker(store(f"redis+cluster://{server}")).kind() == "connection"
    assert f"{server}: This instance has cluster support disabled" in caplog.text


def test_a_node_of_a_cluster_that_is_used_as_one_server_says_so(
    redis_cluster: RedisClusterServers, store: Callable[..., Store]
) -> None:
    asker = Asker(store(f"redis://{redis_cluster.nodes[0].address}"))
    told = set()
    for shard in range(SHARDS):
        try:
            asker.ask(shard)
        except StoreError as error:
            told.add(str(error))
    assert told == {"Redis is a node of a cluster: write redis+cluster://"}


def test_one_node_that_may_evict_flights_is_warned_of(
    own_cluster: RedisClusterServers, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    own_cluster.nodes[1].client().config_set("maxmemory-policy", "allkeys-lru")
    worker(own_cluster.url).run(FlightKey("scoring", 1), Model())
    wait_until(lambda: caplog.text.count("maxmemory-policy is allkeys-lru") == 1, 3)


def test_users_and_passwords(own_cluster: RedisClusterServers, store: Callable[..., Store]) -> None:
    for node in own_cluster.nodes:
        node.client().execute_command("ACL", "SETUSER", "app", "on", ">p/w", "~*", "+@all")
        node.client().execute_command("ACL", "SETUSER", "default", "resetpass")

    def kind(user: str) -> str:
        return Asker(store(own_cluster.url.replace("://", f"://{user}"))).kind()

    assert kind("app:p%2Fw@") == "ok"
    assert kind("app:wrong@") == "denied"
    assert kind("") == "denied"
