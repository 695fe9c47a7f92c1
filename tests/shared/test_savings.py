"""What was saved in a day, over all workers."""

from __future__ import annotations

import time

import gevent

from flightsvc.metrics import FLIGHT_CALLERS, FLIGHT_CALLS, FLIGHT_SAVED, Metrics
from flightsvc.settings import Settings
from flightsvc.store.savings import WINDOW_S, Saved
from flightsvc.store.shared import SharedState
from tests.processes import wait_until
from tests.shared.conftest import Workers
from tests.support.redis_server import RedisServer


def happened(metrics: Metrics, asked: int, calls: int, saved: int) -> None:
    for number, stage in enumerate(("evaluation", "chat")):
        metrics.count(FLIGHT_CALLERS, asked if number else 0, stage=stage)
        metrics.count(FLIGHT_CALLS, calls if number else 0, stage=stage)
        metrics.count(FLIGHT_SAVED, saved if number else 0, stage=stage)


def test_each_reads_the_sum_of_all(workers: Workers) -> None:
    one, two = Metrics.off(), Metrics.off()
    first, second, third = workers(metrics=one), workers(metrics=two), workers()
    happened(one, 100, 10, 90)
    happened(two, 20, 2, 18)

    everybody = (first, second, third)
    wait_until(lambda: {each.savings.read() for each in everybody} == {Saved(120, 12, 108, True)})

    happened(one, 1, 0, 1)
    wait_until(lambda: third.savings.read() == Saved(121, 12, 109, True), 10)


def test_nobody_has_to_look(workers: Workers, redis_server: RedisServer, namespace: str) -> None:
    metrics = Metrics.off()
    workers(metrics=metrics)
    happened(metrics, 7, 3, 4)
    name = f"{{{namespace}}}:count:{int(WINDOW_S * 1000)}:savings asked"

    wait_until(lambda: redis_server.client().hvals(name) == [b"7"], 10)

    assert 86_000 < redis_server.client().ttl(name) <= 86_400


def test_what_came_last_is_sent_at_the_end(workers: Workers) -> None:
    metrics = Metrics.off()
    first, second = workers(metrics=metrics), workers()
    wait_until(lambda: first.watch.up)
    happened(metrics, 5, 1, 4)
    first.close()

    wait_until(lambda: second.savings.read() == Saved(5, 1, 4, True), 10)


def test_a_worker_that_is_new_knows_the_whole_at_its_first_look(workers: Workers) -> None:
    metrics = Metrics.off()
    first = workers(metrics=metrics)
    happened(metrics, 50, 5, 45)
    first.close()
    fresh = workers()
    wait_until(lambda: fresh.watch.up)

    seen = fresh.savings.read()

    assert seen == Saved(50, 5, 45, True)


def test_a_first_look_in_the_middle_of_a_day_is_whole(workers: Workers) -> None:
    """Also where a part was added a moment before, and did not touch each count."""
    one, two = Metrics.off(), Metrics.off()
    first, second = workers(metrics=one), workers(metrics=two)
    happened(one, 100, 10, 90)
    wait_until(lambda: first.savings.read() == Saved(100, 10, 90, True))
    happened(two, 1, 1, 0)
    wait_until(lambda: not second.savings.pending())  # added

    assert second.savings.read() == Saved(101, 11, 90, True)


def test_what_redis_could_not_take_is_added_later(
    workers: Workers, own_redis: RedisServer
) -> None:
    metrics = Metrics.off()
    first, second = workers(own_redis.url, metrics=metrics), workers(own_redis.url)
    wait_until(lambda: first.watch.up)
    own_redis.freeze()
    try:
        wait_until(lambda: not first.watch.up)
        happened(metrics, 30, 3, 27)
        began = time.monotonic()
        while time.monotonic() - began < 6:  # longer than a count is kept for Redis
            assert not first.savings.read().whole
            gevent.sleep(0.2)
    finally:
        own_redis.thaw()

    wait_until(lambda: second.savings.read() == Saved(30, 3, 27, True), 10)


def test_without_redis_it_is_this_worker_s_own() -> None:
    metrics = Metrics.off()
    shared = SharedState(Settings(mode="local"), metrics, None)
    happened(metrics, 10, 4, 6)
    assert shared.savings.read() == Saved(10, 4, 6, False)
    happened(metrics, 1, 1, 0)
    assert shared.savings.read() == Saved(11, 5, 6, False)
    shared.close()


def test_a_process_that_forked_begins_anew() -> None:
    metrics = Metrics.off()
    shared = SharedState(Settings(mode="local"), metrics, None)
    happened(metrics, 10, 4, 6)
    shared.savings.read()
    for counter in (FLIGHT_CALLERS, FLIGHT_CALLS, FLIGHT_SAVED):
        metrics.counter(counter, stage="chat").reset()
    happened(metrics, 2, 1, 1)
    assert shared.savings.read() == Saved(12, 5, 7, False)
    shared.close()
