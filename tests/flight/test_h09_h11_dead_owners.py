"""H09, H11: owners that die, freeze, or are merely slow; each in a process of its own."""

from __future__ import annotations

import time
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import Any

import pytest

from flightsvc.errors import CallFailed
from flightsvc.flight import FlightKey
from flightsvc.flight.coordinator import Ask, FlightCoordinator, Ownership
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.store import Names, open_store
from tests.flight.conftest import Worker
from tests.flight.flying import QUICK, Caller, Model, ask, await_following, count, values
from tests.flight.processes.handle import Child
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "q")
DETECT_S = QUICK["takeover_detect_ms"] / 1000


def test_h09_the_owner_is_killed_and_there_are_exactly_two_calls(
    worker: Worker, redis_server: RedisServer, namespace: str
) -> None:
    with Child(redis_server.url, namespace, **QUICK) as child:
        child.run("q", model_s=30)
        child.heard("began")
        two = worker(**QUICK)
        model = Model(takes_s=0.3)
        followers = ask(two, KEY, model, 10)
        await_following(two)
        # when the owner is gone without a word
        child.signal(SIGKILL)
        killed_at = time.monotonic()
        # then one follower's worker takes over, and all have its answer in time
        assert values(followers) == [{"call": 1}]
        assert model.calls == 1
        assert max(f.answered_at for f in followers) - killed_at < DETECT_S + model.takes_s + 1
        assert model.fences[0] > child.all_heard("began")[0]["fence"]
        assert len(child.all_heard("began")) == 1


def test_h09_followers_on_two_workers_make_one_more_call_together(
    worker: Worker, redis_server: RedisServer, namespace: str
) -> None:
    with Child(redis_server.url, namespace, **QUICK) as child:
        child.run("q", model_s=30)
        child.heard("began")
        two, three = worker(**QUICK), worker(**QUICK)
        model = Model(takes_s=0.3)
        followers = ask(two, KEY, model, 5) + ask(three, KEY, model, 5)
        await_following(two)
        await_following(three)
        child.signal(SIGKILL)
        assert values(followers) == [{"call": 1}]
        assert model.calls == 1


def test_h11_a_lease_much_shorter_than_the_call_is_no_matter(worker: Worker) -> None:
    short = {"heartbeat_ms": 100, "takeover_detect_ms": 800}
    one, two = worker(**short), worker(**short)
    model = Model(takes_s=2.0)
    callers = ask(one, KEY, model)
    model.began.wait()
    callers += ask(two, KEY, model)
    assert values(callers) == [{"call": 1}]
    assert model.calls == 1
    # the follower looked more than once, and found the owner alive each time
    assert count(two, "flight.actions.scoring.follower_wait") >= 2
    assert count(two, "flight.actions.scoring.owner_takeover") == 0


def test_h11_an_owner_that_wakes_after_its_successor_publishes_nothing(
    worker: Worker, redis_server: RedisServer, namespace: str
) -> None:
    with Child(redis_server.url, namespace, **QUICK) as child:
        child.run("q", callers=3, model_s=1.0, value="the old owner's")
        child.heard("began")
        two = worker(**QUICK)
        model = Model(value="the successor's")
        follower = Caller(two, KEY, model)
        await_following(two)
        # given an owner that is frozen past its lease, and a successor that ends
        child.signal(SIGSTOP)
        successor = follower.result()
        assert successor.value == "the successor's"
        # when the old owner goes on, and its call ends
        child.signal(SIGCONT)
        done = child.heard("done")
        # then its own callers have the successor's answer, and the stored one is as it was
        assert done["values"] == ["the successor's"]
        assert done["errors"] == {}
        assert worker(**QUICK).run(KEY, model).fence == successor.fence
        got = child.counts()
        assert got["flight.lost.scoring.stale"] == 1
        assert "flight.ends.scoring.stored" not in got
        client: Any = redis_server.client()
        events = client.xrange(Names(namespace, 16).flight(KEY.flight_id)["events"])
        ends = [fields[b"fence"] for _, fields in events if fields[b"kind"] == b"succeeded"]
        assert ends == [str(successor.fence).encode()]


def test_h11_an_owner_that_wakes_before_its_successor_ends_stops_its_call(
    worker: Worker, redis_server: RedisServer, namespace: str
) -> None:
    with Child(redis_server.url, namespace, **QUICK) as child:
        child.run("q", callers=3, model_s=30, value="the old owner's")
        child.heard("began")
        two = worker(**QUICK)
        model = Model(held=True, value="the successor's")
        follower = Caller(two, KEY, model)
        await_following(two)
        child.signal(SIGSTOP)
        assert model.began.wait(5)
        child.signal(SIGCONT)
        # the old owner learns of it at its next heartbeat, and follows
        wait_until(lambda: "flight.lost.scoring.stale" in child.counts(), 5)
        model.let_go()
        assert follower.result().value == "the successor's"
        assert child.heard("done")["roles"] == {"follower": 3}
        assert child.all_heard("ended") == []


@pytest.fixture
def silent(redis_server: RedisServer, namespace: str) -> FlightCoordinator:
    """Acquires like a worker, and never beats: an owner that dies at once."""
    settings = Settings(takeover_detect_ms=100, heartbeat_ms=50)
    store = open_store(Settings(redis_url=redis_server.url, redis_timeout_ms=1000), Metrics.off())
    return FlightCoordinator(store, Names(namespace, 16), settings, "silent")


def test_h09_a_request_that_kills_its_owners_does_not_kill_them_all(
    worker: Worker, silent: FlightCoordinator
) -> None:
    def owns(token: str) -> bool:
        return isinstance(silent.acquire_or_join(Ask(KEY, token)), Ownership)

    for n in range(4):  # the first owner, and three takeovers
        wait_until(lambda: owns(f"owner {n}"), 3)  # noqa: B023 - is called at once
    # when the fourth in a row is silent too
    caller = Caller(worker(heartbeat_ms=50, takeover_detect_ms=100), KEY, model := Model())
    # then the flight has failed, for this caller and for the next
    error = caller.error()
    assert isinstance(error, CallFailed)
    assert (error.code, error.status) == ("FLIGHT_OWNERS_LOST", 503)
    assert error.retry_after_s is not None
    assert error.retry_after_s > 1
    assert model.calls == 0
