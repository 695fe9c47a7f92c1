"""Redis Sentinel: who is believed, and what a Sentinel that fails costs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import gevent
import pytest

from flightsvc.flight import FlightKey
from flightsvc.store import Store, StoreError
from tests.flight.conftest import Worker
from tests.flight.flying import Caller, Model, count
from tests.processes import wait_until
from tests.support.redis_sentinel import SERVICE, RedisSentinels
from tests.topology.asking import Asker, calls, connections

TIMEOUT_MS = 400
#: one look at the Sentinels and one command, and much room for a slow machine
BOUND_S = 2 * TIMEOUT_MS / 1000 + 1


def test_a_master_that_steps_down_is_left_at_once(
    own_sentinels: RedisSentinels, store: Callable[..., Store]
) -> None:
    # given somebody who asks all the time
    asker = Asker(store(own_sentinels.url))
    asker.ask()
    old = own_sentinels.master
    kinds: list[str] = []

    def ask_on() -> None:
        while True:
            kinds.append(asker.kind())
            gevent.sleep(0.002)

    asking = gevent.spawn(ask_on)
    # when the master becomes a replica
    own_sentinels.step_down(old)
    new = own_sentinels.await_new_master(old)
    wait_until(lambda: calls(new, "evalsha") > 10)
    asking.kill()

    # then nothing was refused for that, and the old one is not asked any more
    assert set(kinds) <= {"ok", "connection"}
    assert kinds.count("connection") <= 10
    before = calls(old, "evalsha")
    assert asker.kinds(10) == ["ok"] * 10
    assert calls(old, "evalsha") == before


def test_h17_a_refusal_of_a_former_master_is_no_failure(
    own_sentinels: RedisSentinels, store: Callable[..., Store]
) -> None:
    asker = Asker(store(own_sentinels.url))
    asker.ask()
    old, new, third = own_sentinels.servers
    # given an operator who changes the roles by hand, and breaks no connection
    new.client().replicaof("no", "one")
    old.client().replicaof("127.0.0.1", new.port)
    third.client().replicaof("127.0.0.1", new.port)
    for sentinel in own_sentinels.sentinels:
        sentinel.client().sentinel_remove(SERVICE)
        sentinel.client().sentinel_monitor(SERVICE, "127.0.0.1", new.port, 2)
    # then who is told READONLY asks the Sentinels, and does it where it was not refused
    assert asker.kind() == "ok"
    assert "errorstat_READONLY" in old.client().info("errorstats")
    assert calls(new, "eval") == 1


def test_a_master_that_was_replaced_while_it_was_frozen_is_not_believed(
    own_sentinels: RedisSentinels, store: Callable[..., Store]
) -> None:
    # given somebody who asked before, and not meanwhile
    asker = Asker(store(own_sentinels.url))
    asker.ask()
    old = own_sentinels.master
    before = calls(old, "evalsha")
    old.freeze()
    own_sentinels.await_new_master(old)
    # when the old master goes on, and takes itself for one
    old.thaw()
    assert asker.kind() == "ok"
    # then it is not asked
    assert own_sentinels.client().exists(asker.name())
    assert calls(old, "evalsha") == before


def test_connections_to_a_former_master_are_closed(
    own_sentinels: RedisSentinels, worker: Worker, namespace: str
) -> None:
    one = worker(f"{own_sentinels.url}?client_name={namespace}")
    two = worker(own_sentinels.url)
    model = Model(held=True)
    callers = [Caller(two, FlightKey("scoring", "x"), model)]
    assert model.began.wait(5)
    callers.append(Caller(one, FlightKey("scoring", "x"), model))
    old = own_sentinels.master
    wait_until(lambda: len(connections(old, namespace)) >= 2)
    # when it freezes, is replaced, and goes on
    old.freeze()
    new = own_sentinels.await_new_master(old)
    wait_until(lambda: one.coordination == "ok")
    old.thaw()
    # then no command and no blocking read is left there
    wait_until(lambda: connections(old, namespace) == [], 2)
    wait_until(lambda: len(connections(new, namespace)) >= 2)
    model.let_go()
    for caller in callers:
        caller.result()


@pytest.mark.parametrize("harm", ["kill", "freeze"])
def test_without_any_sentinel_the_known_master_is_still_used(
    own_sentinels: RedisSentinels, worker: Worker, harm: str
) -> None:
    one = worker(own_sentinels.url, redis_timeout_ms=TIMEOUT_MS)
    one.run(FlightKey("scoring", "warm"), Model())
    for sentinel in own_sentinels.sentinels:
        getattr(sentinel, harm)()
    # also after the time for which their word is good
    for number in range(15):
        caller = Caller(one, FlightKey("scoring", number), Model())
        assert caller.result().role == "owner"
        assert caller.took_s < BOUND_S
        gevent.sleep(0.2)
    assert count(one, "flight.fallbacks.scoring") == 0


def test_one_frozen_sentinel_holds_up_nobody(
    own_sentinels: RedisSentinels, store: Callable[..., Store]
) -> None:
    own_sentinels.sentinels[0].freeze()
    asker = Asker(store(own_sentinels.url, redis_timeout_ms=5_000))
    began = time.monotonic()
    assert asker.kinds(20) == ["ok"] * 20
    assert time.monotonic() - began < 2


def test_frozen_sentinels_are_waited_for_once_by_all(
    own_sentinels: RedisSentinels, store: Callable[..., Store]
) -> None:
    for sentinel in own_sentinels.sentinels:
        sentinel.freeze()
    asker = Asker(store(own_sentinels.url, redis_timeout_ms=TIMEOUT_MS))
    began = time.monotonic()
    assert set(asker.kinds(100)) == {"timeout"}
    assert time.monotonic() - began < BOUND_S
    # each was asked a few times for all of them together
    for sentinel in own_sentinels.sentinels:
        sentinel.thaw()
    wait_until(lambda: asker.kind() == "ok", 5)
    for sentinel in own_sentinels.sentinels:
        assert calls(sentinel, "sentinel|get-master-addr-by-name") < 20


def test_sentinels_that_are_absent_at_the_start_may_come_later(
    own_sentinels: RedisSentinels, worker: Worker
) -> None:
    for sentinel in own_sentinels.sentinels:
        sentinel.kill()
    one = worker(own_sentinels.url)
    assert one.run(FlightKey("scoring", 1), Model()).role == "local"
    assert one.coordination == "degraded"
    for sentinel in own_sentinels.sentinels:
        sentinel.start()
    wait_until(lambda: one.coordination == "ok")
    assert one.run(FlightKey("scoring", 2), Model()).role == "owner"


def test_a_service_that_no_sentinel_knows_is_named_in_the_log(
    redis_sentinels: RedisSentinels,
    store: Callable[..., Store],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    asker = Asker(store(redis_sentinels.url.replace(SERVICE, "flihgts")))
    with pytest.raises(StoreError) as told:
        asker.ask()
    assert told.value.kind == "connection"
    assert asker.kinds(20) == ["connection"] * 20
    assert caplog.text.count("no Sentinel knows a service 'flihgts'") == 1


def test_sentinels_and_servers_have_users_of_their_own(
    own_sentinels: RedisSentinels, store: Callable[..., Store]
) -> None:
    for server in own_sentinels.servers:
        server.client().execute_command("ACL", "SETUSER", "app", "on", ">p/w", "~*", "+@all")
    for sentinel in own_sentinels.sentinels:
        words = ["+sentinel|get-master-addr-by-name", "+sentinel|master"]
        sentinel.client().execute_command("ACL", "SETUSER", "looker", "on", ">l:w", *words)
        sentinel.client().execute_command("ACL", "SETUSER", "default", "resetpass")

    def kind(user: str, options: str) -> str:
        url = own_sentinels.url.replace("://", f"://{user}@") + options
        return Asker(store(url)).kind()

    looker = "?sentinel_username=looker&sentinel_password=l%3Aw"
    assert kind("app:p%2Fw", looker) == "ok"
    assert kind("app:wrong", looker) == "denied"
    assert kind("app:p%2Fw", "?sentinel_username=looker&sentinel_password=x") == "denied"
    assert kind("app:p%2Fw", "") == "denied"
