"""Counts over all workers, failures in a row, and who speaks for all."""

from __future__ import annotations

import time

import gevent

from flightsvc.metrics import Metrics
from flightsvc.store import scripts
from flightsvc.store.counters import OLDEST_S, Streak
from flightsvc.store.modules import Flag
from flightsvc.store.shared import SharedState, Trip
from tests.processes import wait_until
from tests.protocol.conftest import program, redis_server
from tests.protocol.watch import Watch
from tests.shared.conftest import Workers
from tests.support.redis_server import RedisServer

__all__ = ["program", "redis_server"]

STAGE, CODE, OTHER = "stage:evaluation", "AI_INFRA_TIMEOUT", "AI_MODEL_OOM"


def trips(code: str) -> Trip:
    """The flag after ten of each code; OTHER pauses as well."""
    return Trip(10, pauses=code == OTHER)


def fail(shared: SharedState, times: int, code: str = CODE) -> None:
    for _ in range(times):
        shared.counters.failed(STAGE, code)


def test_what_all_workers_counted(workers: Workers) -> None:
    one, other = workers(), workers()
    one.counters.count("x", 60, 3)
    one.counters.count("x", 60)
    one.counters.count("y", 60)
    other.counters.count("x", 60, 5)
    assert (one.counters.total("x", 60), other.counters.total("x", 60)) == (4, 5)

    one.counters.send()

    def all_heard() -> bool:  # what one has sent by itself may still be under way
        other.counters.count("x", 60, 0)
        other.counters.send()
        return other.counters.total("x", 60) == 9

    wait_until(all_heard, 5)
    assert other.counters.total("y", 60) == 0
    other.counters.count("x", 60)  # and what is not sent yet
    assert other.counters.total("x", 60) == 10
    assert other.counters.total("x", 30) == 0  # another window is another count


def test_a_window_moves_on(workers: Workers) -> None:
    one, other = workers(), workers()
    other.counters.count("x", 1.0, 100)
    other.counters.send()
    one.counters.count("x", 1.0)
    one.counters.send()
    assert one.counters.total("x", 1.0) == 101

    until = time.monotonic() + 1.2
    while time.monotonic() < until:  # it goes on being used, so no TTL ends it
        one.counters.count("x", 1.0)
        one.counters.send()
        gevent.sleep(0.1)

    assert one.counters.total("x", 1.0) < 20
    assert other.counters.total("x", 1.0) == 0  # what it heard is too old, and so is its own


def test_sending_costs_a_round_trip_a_second_at_most(
    workers: Workers, own_redis: RedisServer
) -> None:
    shared = workers(own_redis.url)
    shared.counters.send()
    with Watch(own_redis) as commands:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            for number in range(50):
                shared.counters.count(f"x{number % 5}", 60)
                shared.counters.count(f"x{number % 5}", 300)
                shared.counters.failed(STAGE, CODE)
            gevent.sleep(0.01)
        names = [command.words for command in commands.commands()]

    tallies = [words for words in names if words[1] == scripts.sha1("tally")]
    assert 1 <= len(tallies) <= 4  # one at each end


def test_failures_in_a_row_over_all_workers(workers: Workers) -> None:
    one, other = workers(), workers()
    heard: list[Streak] = []
    other.on_streak(heard.append)
    fail(one, 3)
    fail(one, 1, OTHER)
    one.counters.send()
    fail(other, 2)
    assert heard == []

    other.counters.send()

    assert heard == [Streak(STAGE, CODE, 5)]
    assert other.counters.streak(STAGE, CODE) == 5
    one.watch.refresh()
    assert (one.counters.streak(STAGE, CODE), one.counters.streak(STAGE, OTHER)) == (5, 1)
    fail(one, 2)
    assert one.counters.streak(STAGE, CODE) == 7


def test_a_success_anywhere_ends_them(workers: Workers) -> None:
    one, other = workers(), workers()
    fail(one, 3)
    one.counters.failed("stage:evaluation_2", CODE)
    one.counters.send()

    other.counters.succeeded(STAGE)
    fail(other, 1)
    assert other.counters.streak(STAGE, CODE) == 1
    other.counters.send()
    one.watch.refresh()

    assert one.counters.streak(STAGE, CODE) == 1
    assert one.counters.streak("stage:evaluation_2", CODE) == 1


def test_a_success_before_and_after_failures_not_yet_sent(workers: Workers) -> None:
    shared = workers()
    fail(shared, 3)
    shared.counters.succeeded(STAGE)
    fail(shared, 2)
    shared.counters.send()
    fail(shared, 2)
    assert shared.counters.streak(STAGE, CODE) == 4
    shared.counters.send()
    shared.watch.refresh()
    assert shared.counters.streak(STAGE, CODE) == 4


def test_ten_in_a_row_need_a_person_once(workers: Workers) -> None:
    one, other = workers(trips=trips), workers(trips=trips)
    raised: list[Flag] = []
    one.on_flag(raised.append)
    other.on_flag(raised.append)

    # given nine, then a success, then nine
    fail(one, 9)
    one.counters.send()
    other.counters.succeeded(STAGE)
    fail(other, 9)
    other.counters.send()
    assert raised == []

    # when one more comes, and many after it
    fail(one, 1)
    one.counters.send()
    for shared in (one, other) * 3:
        fail(shared, 5)
        shared.counters.send()

    # then the flag is raised once, and nothing is paused
    assert [(flag.module, flag.code, flag.failures) for flag in raised] == [(STAGE, CODE, 10)]
    wait_until(lambda: other.watch.needs_person(STAGE))
    assert other.watch.paused("evaluation") is None

    # and after a person has come, ten more are needed
    one.switches.ack(STAGE, by="anna")
    one.watch.refresh()
    other.watch.refresh()
    fail(one, 9)
    one.counters.send()
    assert len(raised) == 1
    fail(other, 1)
    other.counters.send()
    assert len(raised) == 2


def test_where_the_list_says_so_they_pause_by_themselves(workers: Workers) -> None:
    one, other = workers(trips=trips), workers()

    fail(one, 10, OTHER)  # and nobody sends by hand

    wait_until(lambda: other.watch.paused("evaluation"), 3)
    pause = other.watch.paused("evaluation")
    assert pause is not None
    assert (pause.automatic, pause.reason) == (True, f"10 failures in a row: {OTHER}")


def test_a_worker_that_is_late_does_not_pause_again(workers: Workers) -> None:
    # given ten failures that two workers saw, one of which raised the flag
    one, other = workers(trips=trips), workers(trips=trips)
    fail(one, 10, OTHER)
    one.counters.send()
    assert one.watch.paused("evaluation")

    # when an operator resumes before the other has acted on what it knows
    one.switches.resume(STAGE, by="anna")
    assert not other.switches.need_person(STAGE, OTHER, 10, pause=True)

    # then it stays resumed
    assert one.switches.snapshot().paused == {}


def test_one_of_all_workers_speaks_in_a_window(workers: Workers) -> None:
    some = [workers() for _ in range(3)]

    def ask(name: str) -> int:
        asking = [
            gevent.spawn(each.counters.claim_once, name, 0.5) for each in some for _ in range(4)
        ]
        gevent.joinall(asking)
        return sum(bool(each.value) for each in asking)

    assert ask("alert") == 1
    assert ask("alert") == 0
    assert ask("another") == 1
    gevent.sleep(0.6)
    assert ask("alert") == 1


def test_without_redis_a_worker_counts_for_itself(workers: Workers, own_redis: RedisServer) -> None:
    shared, other = workers(own_redis.url), workers(own_redis.url)
    own_redis.freeze()
    wait_until(lambda: not shared.watch.up)

    shared.counters.count("x", 60, 3)
    fail(shared, 2)

    assert shared.counters.total("x", 60) == 3
    assert shared.counters.streak(STAGE, CODE) == 2
    assert [shared.counters.claim_once("alert", 60) for _ in range(3)] == [True, False, False]

    # and tells the others when it can
    own_redis.thaw()
    wait_until(lambda: other.watch.snapshot.streaks == {(STAGE, CODE): 2})
    other.counters.count("x", 60)
    other.counters.send()
    assert other.counters.total("x", 60) == 4


def test_what_is_too_old_is_not_counted_as_now(workers: Workers, own_redis: RedisServer) -> None:
    shared = workers(own_redis.url)
    own_redis.freeze()
    wait_until(lambda: not shared.watch.up)
    shared.counters.count("x", 60, 3)

    gevent.sleep(OLDEST_S + 0.1)
    own_redis.thaw()
    wait_until(lambda: shared.watch.up)
    shared.counters.count("x", 60)
    shared.counters.send()

    assert own_redis.client().hvals(_only_count(own_redis)) == [b"1"]
    assert shared.counters.total("x", 60) == 4  # this worker itself still knows


def _only_count(server: RedisServer) -> bytes:
    (key,) = server.client().scan_iter(match="*:count:60000:x")
    assert isinstance(key, bytes)
    return key


def test_names_are_bounded(workers: Workers) -> None:
    metrics = Metrics.off()
    shared = workers(start=False, metrics=metrics)
    for number in range(2_100):
        shared.counters.count(f"name{number}", 60)

    assert metrics.snapshot()["shared.dropped.counts"] == 100
