"""Heavy work: one call at a time for a stage and session, on all workers."""

from __future__ import annotations

import time
from typing import Any

import gevent
import pytest
from gevent.event import Event

from flightsvc.errors import CallFailed
from flightsvc.flight import FlightContext, FlightKey, SingleFlight
from flightsvc.settings import Settings
from tests.flight.conftest import Worker, counts
from tests.flight.flying import QUICK, Caller
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

ONE_FILE = FlightKey("extraction", "s1", "file 1")
OTHER_FILE = FlightKey("extraction", "s1", "file 2")


class Heavy:
    """A call under the session's lock, held open until it is let go."""

    def __init__(self, flights: SingleFlight, *, wait_s: float = 5, session: str = "s1") -> None:
        self.flights = flights
        self.wait_s = wait_s
        self.session = session
        self.locked, self.go = Event(), Event()
        self.holds: list[Any] = []

    def __call__(self, ctx: FlightContext) -> str:
        with self.flights.locks.hold(self.session, ctx, wait_s=self.wait_s) as hold:
            self.holds.append(hold)
            self.locked.set()
            self.go.wait()
        return "done"


@pytest.mark.parametrize("same_worker", [True, False])
def test_another_file_of_the_session_waits_and_then_runs(worker: Worker, same_worker: bool) -> None:
    one = worker(**QUICK)
    two = one if same_worker else worker(**QUICK)
    first, second = Heavy(one), Heavy(two)
    a = Caller(one, ONE_FILE, first)
    assert first.locked.wait(2)
    b = Caller(two, OTHER_FILE, second)
    assert not second.locked.wait(0.3)
    freed = time.monotonic()
    first.go.set()
    assert second.locked.wait(2)
    assert time.monotonic() - freed < 0.5
    second.go.set()
    assert (a.result().value, b.result().value) == ("done", "done")
    assert same_worker or second.holds[0].fence > first.holds[0].fence > 0


@pytest.mark.parametrize("same_worker", [True, False])
def test_who_waits_longer_than_the_limit_is_told_that_the_session_is_busy(
    worker: Worker, same_worker: bool
) -> None:
    one = worker(**QUICK)
    two = one if same_worker else worker(**QUICK)
    first = Heavy(one)
    a = Caller(one, ONE_FILE, first)
    assert first.locked.wait(2)
    error = Caller(two, OTHER_FILE, Heavy(two, wait_s=0.3)).error(2)
    assert isinstance(error, CallFailed)
    assert (error.code, error.status, error.retry_after_s) == ("SESSION_BUSY", 409, 5)
    assert counts(two)["flight.locks.extraction.busy"] == 1
    first.go.set()
    a.result()


def test_the_same_file_on_another_worker_joins_and_does_not_wait(worker: Worker) -> None:
    one, two = worker(**QUICK), worker(**QUICK)
    first, twin = Heavy(one), Heavy(two, wait_s=0.1)
    callers = [Caller(one, ONE_FILE, first)]
    assert first.locked.wait(2)
    callers.append(Caller(two, ONE_FILE, twin))
    gevent.sleep(0.3)
    first.go.set()
    assert [caller.result().role for caller in callers] == ["owner", "follower"]
    assert twin.holds == []


def test_other_sessions_stages_and_tenants_do_not_wait(worker: Worker) -> None:
    one = worker(**QUICK)
    first = Heavy(one)
    a = Caller(one, ONE_FILE, first)
    assert first.locked.wait(2)
    for key, session in (
        (FlightKey("extraction", "s2", "file 2"), "s2"),
        (FlightKey("demeanor", "s1", "image"), "s1"),
    ):
        other = Heavy(one, session=session)
        other.go.set()
        assert Caller(one, key, other).result(2).value == "done"
    first.go.set()
    a.result()


def test_the_lock_is_renewed_for_longer_than_its_lease(worker: Worker) -> None:
    one, two = worker(**QUICK), worker(**QUICK)
    first, second = Heavy(one), Heavy(two)
    a = Caller(one, ONE_FILE, first)
    assert first.locked.wait(2)
    b = Caller(two, OTHER_FILE, second)
    assert not second.locked.wait(3 * QUICK["takeover_detect_ms"] / 1000)
    assert not first.holds[0].lost
    first.go.set()
    second.go.set()
    a.result()
    b.result()


def test_a_holder_that_died_frees_the_session_within_its_lease(
    worker: Worker, redis_server: RedisServer, namespace: str
) -> None:
    one, two = worker(**QUICK), worker(**QUICK)
    first, second = Heavy(one), Heavy(two)
    Caller(one, ONE_FILE, first)
    assert first.locked.wait(2)
    # given a holder that renews nothing any more
    assert one._distributed is not None
    one._distributed._heartbeat.close()
    b = Caller(two, OTHER_FILE, second)
    assert second.locked.wait(QUICK["takeover_detect_ms"] / 1000 + 1)
    second.go.set()
    assert b.result().value == "done"
    first.go.set()


def test_a_takeover_of_the_flight_takes_the_lock_too(worker: Worker) -> None:
    one, two = worker(**QUICK), worker(**QUICK)
    first, twin = Heavy(one), Heavy(two, wait_s=2)
    Caller(one, ONE_FILE, first)
    assert first.locked.wait(2)
    follower = Caller(two, ONE_FILE, twin)
    assert one._distributed is not None
    one._distributed._heartbeat.close()
    assert twin.locked.wait(QUICK["takeover_detect_ms"] / 1000 + 2)
    assert twin.holds[0].flight_fence > first.holds[0].flight_fence
    twin.go.set()
    assert follower.result().value == "done"
    first.go.set()


def test_only_the_holder_frees_or_renews(
    worker: Worker, redis_server: RedisServer, namespace: str
) -> None:
    one, two = worker(**QUICK), worker(**QUICK)
    first = Heavy(one)
    a = Caller(one, ONE_FILE, first)
    assert first.locked.wait(2)
    assert two._distributed is not None
    stranger = first.holds[0].__class__(
        first.holds[0].lock_id, "extraction", ONE_FILE.flight_id, 0, fence=first.holds[0].fence
    )
    two._distributed.locks._held[stranger.lock_id] = stranger
    two._distributed.locks.give_back(stranger)
    second = Heavy(two, wait_s=0.2)
    assert isinstance(Caller(two, OTHER_FILE, second).error(2), CallFailed)
    first.go.set()
    a.result()


def test_an_evicted_lock_is_taken_again(
    worker: Worker, redis_server: RedisServer, namespace: str
) -> None:
    one, two = worker(**QUICK), worker(**QUICK)
    first = Heavy(one)
    a = Caller(one, ONE_FILE, first)
    assert first.locked.wait(2)
    client = redis_server.client()
    (lock,) = client.scan_iter(f"*{namespace}.*:lock:*")
    client.delete(lock)
    wait_until(lambda: client.exists(lock))
    assert isinstance(Caller(two, OTHER_FILE, Heavy(two, wait_s=0.2)).error(2), CallFailed)
    first.go.set()
    a.result()


def test_without_redis_the_lock_holds_inside_the_worker() -> None:
    one = SingleFlight(Settings(mode="local"))
    first, second = Heavy(one), Heavy(one)
    a = Caller(one, ONE_FILE, first)
    assert first.locked.wait(2)
    b = Caller(one, OTHER_FILE, second)
    assert not second.locked.wait(0.2)
    first.go.set()
    assert second.locked.wait(2)
    second.go.set()
    assert (a.result().value, b.result().value) == ("done", "done")
    one.close()


def test_a_lock_taken_while_redis_was_away_is_known_there_when_it_is_back(
    worker: Worker, own_redis: RedisServer
) -> None:
    one, two = (worker(url=own_redis.url, **QUICK) for _ in range(2))
    own_redis.kill()
    first = Heavy(one)
    a = Caller(one, ONE_FILE, first)
    assert first.locked.wait(3)
    own_redis.start()
    client = own_redis.client()
    wait_until(lambda: client.keys("*:lock:*"))
    assert isinstance(Caller(two, OTHER_FILE, Heavy(two, wait_s=0.2)).error(3), CallFailed)
    first.go.set()
    a.result()
