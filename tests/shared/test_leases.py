"""H34: one worker of all tries whether a model is back."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from flightsvc.guard.shared import ProbeLease
from flightsvc.store.leases import LEASE_S
from flightsvc.store.shared import SharedState
from tests.processes import run_python, wait_until
from tests.protocol.conftest import program, redis_server
from tests.shared.conftest import Workers
from tests.shared.holder import PROGRAM, TARGET
from tests.support.redis_server import RedisServer

__all__ = ["program", "redis_server"]

Holder = subprocess.Popen[str]


@pytest.fixture
def holder(redis_server: RedisServer, namespace: str) -> Iterator[Callable[[], Holder]]:
    """Makes worker processes."""
    made: list[Holder] = []

    def make() -> Holder:
        process = run_python(PROGRAM, redis_server.url, namespace)
        made.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield make
    for process in made:
        process.kill()
        process.wait()


def ask(process: Holder, callers: int) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{callers}\n")
    process.stdin.flush()


def told(process: Holder) -> dict[str, Any]:
    assert process.stdout is not None
    said: dict[str, Any] = json.loads(process.stdout.readline())
    return said


def test_h34_of_twenty_callers_over_two_workers_one_may_try(holder: Callable[[], Holder]) -> None:
    both = [holder(), holder()]

    for process in both:
        ask(process, 10)
    said = [told(process) for process in both]

    assert sorted(each["granted"] for each in said) == [0, 1]
    refused = next(each for each in said if each["granted"] == 0)
    assert 0 < refused["wait_s"] <= LEASE_S


def test_h34_a_killed_prober_makes_room_soon(holder: Callable[[], Holder]) -> None:
    first, second = holder(), holder()
    ask(first, 1)
    assert told(first)["granted"] == 1
    ask(second, 1)
    assert told(second)["granted"] == 0

    first.kill()
    began, granted = time.monotonic(), 0
    while not granted:
        assert time.monotonic() - began < LEASE_S + 1
        gevent.sleep(0.05)
        ask(second, 1)
        granted = told(second)["granted"]


def test_a_probe_is_held_while_it_runs(workers: Workers) -> None:
    one, other = workers(), workers()
    token = one.probes.take(TARGET, 60)
    assert token

    until = time.monotonic() + 1.5 * LEASE_S
    while time.monotonic() < until:
        assert other.probes.take(TARGET, 60) is None
        gevent.sleep(0.1)

    one.probes.give_back(TARGET, token)
    wait_until(lambda: other.probes.take(TARGET, 60), 1)


def test_a_probe_of_unknown_length_is_not_held_for_ever(workers: Workers) -> None:
    one, other = workers(), workers()
    assert one.probes.take(TARGET, 0.1)  # and never given back

    wait_until(lambda: other.probes.take(TARGET, 60), LEASE_S + 1)


def test_who_gave_it_back_may_take_it_at_once(workers: Workers) -> None:
    one = workers()
    for _ in range(50):
        token = one.probes.take(TARGET, 60)
        assert token
        one.probes.give_back(TARGET, token)


def test_only_the_holder_s_token_gives_it_back(workers: Workers) -> None:
    one, other = workers(), workers()
    assert one.probes.take(TARGET, 60)

    other.probes.give_back(TARGET, "guessed")
    one.probes.give_back(TARGET, "guessed")
    gevent.sleep(0.1)

    assert other.probes.take(TARGET, 60) is None
    assert other.probes.take(("openai", "another"), 60)


def test_an_old_token_does_not_end_a_new_lease(workers: Workers, namespace: str) -> None:
    one, other = workers(), workers()
    old = one.probes.take(TARGET, 0.1)
    assert old
    wait_until(lambda: other.probes.take(TARGET, 60), LEASE_S + 1)

    one.probes.give_back(TARGET, old)
    gevent.sleep(0.1)

    assert one.probes.take(TARGET, 60) is None


def test_without_redis_every_worker_may_try(workers: Workers, own_redis: RedisServer) -> None:
    one, other = workers(own_redis.url), workers(own_redis.url)
    own_redis.freeze()
    wait_until(lambda: not one.watch.up)
    wait_until(lambda: not other.watch.up)

    began = time.monotonic()
    tokens = [one.probes.take(TARGET, 60), other.probes.take(TARGET, 60)]
    one.probes.give_back(TARGET, tokens[0] or "")
    assert time.monotonic() - began < 0.05
    assert all(tokens)
    own_redis.thaw()


def test_it_fits_the_guard_s_seam(workers: Workers) -> None:
    shared: SharedState = workers()
    seam: ProbeLease = shared.probes
    token = seam.take(TARGET, 1.0)  # type: ignore[arg-type]  # a plain tuple does as well
    assert token
