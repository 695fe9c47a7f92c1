"""The master dies, freezes or steps down while a flight is in the air."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from flightsvc.flight import FlightContext, FlightKey, SingleFlight
from flightsvc.store import Names
from tests.flight.conftest import Worker
from tests.flight.flying import Caller, Model, ask, await_following, count, roles, values
from tests.processes import wait_until
from tests.support.redis_node import RedisNode
from tests.topology.conftest import Servers, servers_of

KEY = FlightKey("scoring", "s1", "an answer")
#: frequent heartbeats, time-outs that only a frozen server meets, and the default patience, which
#: is more than a failover takes here
STEADY: dict[str, Any] = {
    "heartbeat_ms": 200,
    "redis_timeout_ms": 600,
    "takeover_detect_ms": 6_000,
}
ENDS: dict[str, Callable[[RedisNode], None]] = {
    "killed": RedisNode.kill,
    "frozen": RedisNode.freeze,
}


@pytest.fixture
def name(namespace: str) -> str:
    """A name of the flight."""
    return Names(namespace, 16).flight(KEY.flight_id)["meta"]


@pytest.fixture(
    params=[(k, p) for k in ("sentinel", "cluster") for p in ("debian", "embedded")], ids="-".join
)
def servers(request: pytest.FixtureRequest) -> Iterator[Servers]:
    """Servers of each kind and program."""
    with servers_of(*request.param) as servers:
        yield servers


def healthy(*workers: SingleFlight) -> bool:
    """Whether all of them coordinate."""
    return all(flights.coordination == "ok" for flights in workers)


def fly(owner: SingleFlight, followers: list[SingleFlight], model: Model) -> list[Caller]:
    """An owner, and five followers in each of the other workers."""
    callers = ask(owner, KEY, model, 2)
    assert model.began.wait(5)
    for flights in followers:
        callers += ask(flights, KEY, model, 5)
        await_following(flights)
    return callers


@pytest.mark.parametrize("end", ENDS)
def test_a_flight_outlives_its_master(
    worker: Worker, servers: Servers, name: str, end: str
) -> None:
    # given an owner in one worker, and followers in two others
    one, two, three = (worker(servers.url, **STEADY) for _ in range(3))
    model = Model(held=True)
    callers = fly(one, [two, three], model)

    # when the master ends, and a replica takes its place
    master = servers.master_of(name)
    ENDS[end](master)
    servers.await_new_master(master, name)
    if end == "frozen":
        master.thaw()
    wait_until(lambda: healthy(one, two, three), 10)

    # then nobody goes without an answer, and there is one call, or one more
    model.let_go()
    assert len(values(callers)) == 1
    assert model.calls <= 2
    # and the new master has it
    assert worker(servers.url, **STEADY).run(KEY, model).role == "replay"
    assert model.calls <= 2


@pytest.mark.parametrize("fails", [False, True], ids=["answer", "failure"])
def test_a_call_ends_while_there_is_no_master(
    worker: Worker, own_servers: Servers, name: str, fails: bool
) -> None:
    one, two = (worker(own_servers.url, **STEADY) for _ in range(2))
    model = Model(held=True, error=ValueError() if fails else None)
    callers = fly(one, [two], model)
    master = own_servers.master_of(name)

    # when the master is gone, and the call ends
    master.kill()
    wait_until(lambda: not healthy(one), 5)
    model.let_go()

    # then the owner's callers hear it at once, the others when there is a master again
    mine, theirs = callers[:2], callers[2:]
    for caller in mine:
        caller.error(1) if fails else caller.result(1)
    own_servers.await_new_master(master, name)
    for caller in theirs:
        caller.error(5) if fails else caller.result(5)
    assert model.calls == 1


def test_a_flight_that_the_new_master_never_heard_of(
    worker: Worker, own_servers: Servers, name: str
) -> None:
    # given a master whose replicas get nothing any more, and a flight in the air
    one, two, three = (worker(own_servers.url, **STEADY) for _ in range(3))
    master = own_servers.master_of(name)
    master.client().execute_command("ACL", "SETUSER", "default", "-psync", "-sync")
    master.client().client_kill_filter(_type="replica")
    wait_until(lambda: master.client().info("replication")["connected_slaves"] == 0)
    model = Model(held=True)
    callers = fly(one, [two, three], model)

    # when one of them takes over
    master.kill()
    new = own_servers.await_new_master(master, name)
    wait_until(lambda: new.client().exists(name), 10)
    gevent.sleep(2 * STEADY["heartbeat_ms"] / 1000)
    model.let_go()

    # then either the owner has the flight again, or a follower has made a call of its own
    assert len(values(callers)) == 1
    assert model.calls <= 2
    assert len({caller.result().fence for caller in callers}) == 1


def test_a_master_that_steps_down_costs_no_call(
    worker: Worker, own_servers: Servers, name: str
) -> None:
    one, two = (worker(own_servers.url, **STEADY) for _ in range(2))
    model = Model(held=True)
    callers = fly(one, [two], model)

    master = own_servers.master_of(name)
    own_servers.step_down(master)
    own_servers.await_new_master(master, name)
    wait_until(lambda: healthy(one, two), 10)

    model.let_go()
    assert values(callers) == [{"call": 1}]
    assert roles(callers) == ["follower"] * 6 + ["owner"]
    assert model.calls == 1
    assert count(one, "flight.fallbacks.scoring") == count(two, "flight.fallbacks.scoring") == 0


@pytest.mark.parametrize("end", ENDS)
def test_callers_that_come_all_the_time_are_all_answered(
    worker: Worker, own_servers: Servers, name: str, end: str
) -> None:
    workers = [worker(own_servers.url, **STEADY) for _ in range(2)]
    calls: dict[int, int] = {}
    callers: dict[int, list[Caller]] = {}

    def come(number: int) -> None:
        """A question that both workers are asked."""

        def call(_: FlightContext) -> int:
            calls[number] = calls.get(number, 0) + 1
            gevent.sleep(0.1)
            return number

        key = FlightKey("scoring", "come", number)
        callers[number] = [caller for one in workers for caller in ask(one, key, call, 2)]

    def come_until(true: Callable[[], bool]) -> None:
        until = len(callers) + 1_500
        while not true() and len(callers) < until:
            come(len(callers))
            gevent.sleep(0.01)

    # given callers before, during and after a failover
    master = own_servers.master_of(name)
    come_until(lambda: len(callers) == 30)
    ENDS[end](master)
    looking = gevent.spawn(own_servers.await_new_master, master, name)
    come_until(lambda: looking.dead)
    looking.get()
    if end == "frozen":
        master.thaw()
    come_until(lambda: healthy(*workers))
    first_after = len(callers)
    come_until(lambda: len(callers) == first_after + 30)

    # then all have their answer, also who follows a flight whose end only the old master heard;
    # the question cost a call in each worker at most
    for number, asked in callers.items():
        assert values(asked, within_s=2 * STEADY["takeover_detect_ms"] / 1000) == [number]
    assert max(calls.values()) <= 2
    # and those that came when all was well again cost one
    assert [calls[number] for number in range(first_after, first_after + 30)] == [1] * 30
