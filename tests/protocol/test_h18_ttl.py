"""H18: no key without a TTL at any moment, and after the longest TTL none is left."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import gevent
from gevent.event import Event

from flightsvc.errors import CallFailed
from flightsvc.flight import FlightKey, verbs
from flightsvc.flight.coordinator import EVENTS_TTL_MS
from tests.flight.conftest import Worker
from tests.processes import run_python
from tests.protocol.desk import Desk
from tests.support.redis_server import RedisServer

GOOD, KILLED = 100, 20
TTL_MS = 1_000
SHORT: dict[str, int] = dict.fromkeys(
    ("live_ttl_ms", "failure_ttl_ms", "result_ttl_ms", "events_ttl_ms", "ttl_ms"), TTL_MS
)


def _ends(desk: Desk, fence: str) -> list[Callable[[], list[object]]]:
    """Every way in which a flight in the air can end."""
    own: dict[str, str | int] = {"fence": fence, **SHORT}
    return [
        lambda: desk.run(verbs.FINISH, **own),
        lambda: desk.run(verbs.FAIL, **own),
        lambda: desk.run(verbs.RELEASE, **own),
        lambda: desk.run(verbs.ABANDON, **own),
    ]


def _fly(desk: Desk, number: int, steps: int) -> None:
    """A flight that ends, or is killed after some of its steps.

    The desk looks at all keys after each.
    """
    fence = desk.own("a", **SHORT)
    own: dict[str, str | int] = {"fence": fence, **SHORT}
    ends = _ends(desk, fence)
    path: list[Callable[[], object]] = [
        lambda: desk.run(verbs.MARK_RUNNING, **own),
        lambda: desk.run(verbs.APPEND, "x", **own),
        lambda: desk.beat((desk.flight_id, "a", fence), live_ttl_ms=TTL_MS),
        *([lambda: desk.ask("b", worker="w2", **SHORT)] if number % 3 == 0 else []),
        lambda: desk.run(verbs.WAKE, worker="w2", **SHORT),
        ends[number % len(ends)],
    ]
    for step in path[:steps]:
        step()


def test_h18_of_every_step_of_good_and_killed_flights(own_desk: Desk) -> None:
    # given 100 flights that end, in each way, and 20 that are killed, after each step
    for number in range(GOOD + KILLED):
        flight_id = os.urandom(16).hex()
        with Desk(own_desk.server, own_desk.namespace, flight_id) as desk:
            _fly(desk, number, 99 if number < GOOD else number % 5)
    until = time.monotonic() + TTL_MS / 1000

    # when the longest TTL has passed
    while time.monotonic() < until:
        time.sleep(0.02)

    # then nothing is left but the fences
    left = own_desk.all_keys()
    assert {key.rpartition(b":")[2] for key in left} == {b"fence"}


KILL_ME = """
import sys
from gevent import monkey; monkey.patch_all()
import gevent
from flightsvc.flight import FlightKey, SingleFlight
flights = SingleFlight.from_url(sys.argv[1], namespace=sys.argv[2], heartbeat_ms=50)
began = []
def call(ctx):
    began.append(1)
    gevent.sleep(60)
for number in range(int(sys.argv[3])):
    gevent.spawn(flights.run, FlightKey("scoring", "killed", number), call)
while len(began) < int(sys.argv[3]):
    gevent.sleep(0.01)
print("flying", flush=True)
gevent.sleep(60)
"""


def test_h18_of_workers_one_of_which_is_killed(
    worker: Worker, own_redis: RedisServer, namespace: str
) -> None:
    # given somebody who looks at all keys all the time
    desk, over, longest = Desk(own_redis, namespace), Event(), 0

    def look() -> None:
        while not over.is_set():
            desk.check_ttls()
            gevent.sleep(0.002)

    looking = gevent.spawn(look)

    # when a worker with 20 flights is killed, and another one makes 100
    process = run_python(KILL_ME, own_redis.url, namespace, str(KILLED))
    assert process.stdout is not None
    assert process.stdout.readline() == "flying\n"
    process.kill()
    process.wait()
    flights = worker(own_redis.url, heartbeat_ms=50, stages={"default": {"result_ttl_s": 40}})
    for number in range(GOOD):
        _call(flights.run, number)
    over.set()
    looking.get()

    # then every key had a TTL at any time, and has one that its settings allow
    for key in desk.all_keys():
        if not key.endswith(b":fence"):
            longest = max(longest, desk.client.pttl(key))
    assert EVENTS_TTL_MS < longest <= 60_000
    desk.store.close()


def _call(run: Callable[..., object], number: int) -> None:
    """A flight of the worker that lives: most succeed, some fail."""

    def call(ctx: object) -> int:
        return 1 // (number % 10)

    try:
        run(FlightKey("scoring", "good", number), call)
    except CallFailed:
        assert number % 10 == 0
