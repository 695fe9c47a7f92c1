"""What requests look up: never by a command of their own, and never long out of date."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import gevent
import pytest

from flightsvc.metrics import Metrics
from flightsvc.store import StoreError
from flightsvc.store.watch import LOOK_S, SharedWatch
from tests.processes import wait_until
from tests.protocol.watch import Watch
from tests.shared.conftest import Workers
from tests.support.redis_server import RedisServer

TARGET = ("openai", "gpt-4o")
#: what an operator is promised, in s
SEEN_S = 1.0
#: far below a round trip to a frozen server, far above a dict look-up
INSTANT_S = 0.05


def seen_after(true: Callable[[], object]) -> float:
    began = time.monotonic()
    wait_until(true, 5)
    return time.monotonic() - began


def look_up(watch: SharedWatch) -> float:
    """Everything that a request asks; how long it took."""
    began = time.monotonic()
    watch.paused("evaluation", "openai")
    watch.rolled_back("evaluation")
    watch.breaker_open(TARGET)
    watch.needs_person("stage:evaluation")
    return time.monotonic() - began


def test_what_one_worker_switches_others_see_within_a_second(workers: Workers) -> None:
    one, other = workers(), workers()
    see = other.watch

    one.switches.pause("evaluation", by="anna", reason="x")
    assert seen_after(lambda: see.paused("evaluation", "openai")) < SEEN_S
    assert see.paused("chat", "openai") is None
    one.switches.pause("openai", by="anna", reason="y")
    assert seen_after(lambda: see.paused("chat", "openai")) < SEEN_S
    assert see.paused("chat", "simulated") is None
    one.switches.roll_back("chat", by="anna", reason="z")
    assert seen_after(lambda: see.rolled_back("chat")) < SEEN_S
    assert see.rolled_back("evaluation") is None
    one.switches.resume("evaluation", by="anna")
    one.switches.resume("openai", by="anna")
    one.switches.restore("chat", by="anna")
    assert (
        seen_after(lambda: not (see.paused("evaluation", "openai") or see.rolled_back("chat"))) < 1
    )


def test_a_new_worker_knows_before_its_first_request(workers: Workers) -> None:
    workers().switches.pause("evaluation", by="anna", reason="x")

    assert workers().watch.paused("evaluation")


def test_a_worker_that_nobody_started_begins_at_the_first_look_up(workers: Workers) -> None:
    workers().switches.pause("evaluation", by="anna", reason="x")
    lazy = workers(start=False)

    assert seen_after(lambda: lazy.watch.paused("evaluation")) < SEEN_S


def test_requests_cost_redis_nothing(workers: Workers, own_redis: RedisServer) -> None:
    shared = workers(own_redis.url)
    shared.counters.send()  # a script that the server does not know costs more calls
    with Watch(own_redis) as commands:
        until = time.monotonic() + 2 * LOOK_S
        while time.monotonic() < until:
            for _ in range(100):
                look_up(shared.watch)
                shared.counters.count("x", 60)
                shared.counters.succeeded("stage:evaluation")
            gevent.sleep(0.01)
        seen = [command.words[0].upper() for command in commands.commands()]

    # two looks or three, and one round trip for what was counted
    assert set(seen) == {"EVALSHA"}
    assert 2 <= len(seen) <= 5


def test_hints_of_a_breaker(workers: Workers) -> None:
    one, other = workers(), workers()

    one.hints.opened(TARGET, 30)
    assert seen_after(lambda: other.watch.breaker_open(TARGET)) < SEEN_S
    left_s = other.watch.breaker_open(TARGET)
    assert left_s is not None
    assert 25 < left_s <= 30
    assert other.watch.breaker_open(("openai", "gpt-5")) is None

    other.hints.closed(TARGET)
    assert seen_after(lambda: not one.watch.breaker_open(TARGET)) < SEEN_S


def test_a_hint_ends_by_itself(workers: Workers, redis_server: RedisServer, namespace: str) -> None:
    one, other = workers(), workers()
    one.hints.opened(TARGET, 30)
    one.hints.opened(("openai", "short"), 1.0)
    wait_until(lambda: other.watch.breaker_open(("openai", "short")))

    wait_until(lambda: not other.watch.breaker_open(("openai", "short")))
    assert other.watch.breaker_open(TARGET)
    one.hints.opened(("openai", "third"), 5)  # sweeps
    wait_until(lambda: other.watch.breaker_open(("openai", "third")))
    held = redis_server.client().hkeys(f"{{{namespace}}}:hints")
    assert sorted(held) == [b"openai/gpt-4o", b"openai/third"]


def test_a_frozen_redis_leaves_what_was_known(workers: Workers, own_redis: RedisServer) -> None:
    # given a worker that knows of a pause
    metrics = Metrics.off()
    one = workers(own_redis.url)
    shared = workers(own_redis.url, metrics=metrics)
    one.switches.pause("evaluation", by="anna", reason="x")
    wait_until(lambda: shared.watch.paused("evaluation"))

    # when Redis is frozen
    own_redis.freeze()
    wait_until(lambda: not shared.watch.up)

    # then look-ups and what is told to the others take no time, and the pause holds
    slowest = 0.0
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        began = time.monotonic()
        look_up(shared.watch)
        shared.hints.opened(TARGET, 1.0)
        shared.counters.count("x", 60)
        shared.counters.failed("stage:evaluation", "AI_INFRA_TIMEOUT")
        assert shared.probes.take(TARGET, 1.0)
        shared.counters.claim_once("alert", 60)
        slowest = max(slowest, time.monotonic() - began)
        gevent.sleep(0.01)
    assert slowest < INSTANT_S
    assert shared.watch.paused("evaluation")
    assert metrics.snapshot()["shared.age"] > 1.0
    with pytest.raises(StoreError):
        shared.switches.resume("evaluation", by="anna")

    # and when it is back, so is the truth
    own_redis.thaw()
    wait_until(lambda: shared.watch.up)
    shared.switches.resume("evaluation", by="anna")
    assert seen_after(lambda: not shared.watch.paused("evaluation")) < SEEN_S


def test_a_worker_starts_without_redis(workers: Workers, own_redis: RedisServer) -> None:
    other = workers(own_redis.url)
    other.switches.pause("evaluation", by="anna", reason="x")
    own_redis.freeze()

    began = time.monotonic()
    shared = workers(own_redis.url)
    assert time.monotonic() - began < 1
    assert shared.watch.paused("evaluation") is None
    assert not shared.watch.up

    own_redis.thaw()
    wait_until(lambda: shared.watch.paused("evaluation"))


def test_a_fork_reads_for_itself(workers: Workers) -> None:
    one, shared = workers(), workers()
    assert shared.watch.paused("evaluation") is None
    reader, writer = os.pipe()

    pid = os.fork()
    if pid == 0:  # the child tells when it sees the pause, by nothing but look-ups
        until = time.monotonic() + 5
        shared.watch.paused("evaluation")
        os.write(writer, b"r")
        while not shared.watch.paused("evaluation") and time.monotonic() < until:
            gevent.sleep(0.01)
        os.write(writer, b"1" if shared.watch.paused("evaluation") else b"0")
        os._exit(0)
    os.close(writer)
    assert os.read(reader, 1) == b"r"
    one.switches.pause("evaluation", by="anna", reason="x")
    assert os.read(reader, 1) == b"1"
    os.waitpid(pid, 0)
    os.close(reader)
    assert seen_after(lambda: shared.watch.paused("evaluation")) < SEEN_S


def test_what_waits_is_sent_at_the_end(workers: Workers, redis_server: RedisServer) -> None:
    one, other = workers(), workers()
    one.counters.count("x", 60, 7)
    one.hints.opened(TARGET, 30)

    one.close()

    other.counters.count("x", 60)
    other.counters.send()
    assert other.counters.total("x", 60) == 8
    assert other.watch.refresh().open_until


def test_an_end_does_not_wait_for_a_frozen_redis(workers: Workers, own_redis: RedisServer) -> None:
    shared = workers(own_redis.url)
    shared.counters.count("x", 60)
    own_redis.freeze()

    began = time.monotonic()
    shared.close()

    assert time.monotonic() - began < 2.5
    own_redis.thaw()
