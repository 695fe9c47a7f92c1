"""Fences rise strictly, also where Redis lost everything."""

from __future__ import annotations

import os

from flightsvc.flight import verbs
from flightsvc.flight.coordinator import Ask, Ownership
from flightsvc.flight.key import FlightKey
from tests.protocol.desk import SHARDS, Desk


def test_a_fence_is_at_least_the_servers_clock(desk: Desk) -> None:
    before = desk.now_us()

    fence = int(desk.own("a"))

    assert before <= fence <= desk.now_us()


def test_a_fence_is_above_the_last_of_its_shard(desk: Desk) -> None:
    # given a shard whose last fence is ahead of the clock
    ahead = desk.now_us() + 10**9
    desk.client.set(desk.keys["fence"], ahead)

    assert int(desk.own("a")) == ahead + 1
    assert int(desk.client.get(desk.keys["fence"])) == ahead + 1


def test_a_fence_is_above_the_highest_that_the_asker_has_seen(desk: Desk) -> None:
    seen = desk.now_us() + 10**9

    assert int(desk.own("a", min_fence=seen)) == seen + 1


def test_fences_of_one_microsecond_differ(desk: Desk) -> None:
    # given many flights of one shard, some of them ahead of the clock
    desk.client.set(desk.keys["fence"], desk.now_us() + 10**6)
    fences = []
    for _ in range(50):
        flight_id = f"{int(os.urandom(14).hex(), 16) * SHARDS:032x}"
        fences.append(int(Desk(desk.server, desk.namespace, flight_id).own()))

    assert fences == sorted(set(fences))


def test_fences_of_a_flight_rise_with_every_ownership(desk: Desk) -> None:
    fences = [desk.own("t0")]
    for number in range(1, 8):
        fence = fences[-1]
        if number % 3 == 0:
            desk.run(verbs.RELEASE, token=f"t{number - 1}", fence=fence)
        elif number % 3 == 1:
            desk.fail(fence, f"t{number - 1}")
            desk.client.hset(desk.keys["meta"], "ownerships", 1)
        else:
            desk.finish(fence, f"t{number - 1}")
        fences.append(desk.own(f"t{number}", replay=0))

    assert [int(fence) for fence in fences] == sorted({int(fence) for fence in fences})


def test_fences_rise_over_lost_data_by_the_clock(own_desk: Desk) -> None:
    first = own_desk.own("a")
    own_desk.client.flushall()

    second = own_desk.own("b")

    assert int(second) > int(first)


def test_fences_rise_over_lost_data_and_a_clock_set_back(own_desk: Desk) -> None:
    # given a worker that has seen a fence above the clock's time, as after a clock set back
    coordinator = own_desk.coordinator()
    first = coordinator.acquire_or_join(Ask(FlightKey("scoring", "k"), "a"))
    assert isinstance(first, Ownership)
    flight_id = first.key.flight_id
    ahead = own_desk.now_us() + 10**9
    own_desk.client.set(own_desk.names.flight(flight_id)["fence"], ahead)
    coordinator.release(first)
    second = coordinator.acquire_or_join(Ask(first.key, "b"))
    assert isinstance(second, Ownership)
    assert second.fence == ahead + 1

    # when all data is lost
    own_desk.client.flushall()

    # then its next fences are above all it has seen, on every shard
    for number in range(20):
        third = coordinator.acquire_or_join(Ask(FlightKey("scoring", str(number)), "c"))
        assert isinstance(third, Ownership)
        assert third.fence > second.fence


def test_a_follower_raises_the_fences_it_gives_later(own_desk: Desk) -> None:
    # given a worker that only followed an owner whose fence is ahead of the clock
    owner, follower = own_desk.coordinator("w1"), own_desk.coordinator("w2")
    key = FlightKey("scoring", "k")
    ahead = own_desk.now_us() + 10**9
    own_desk.client.set(own_desk.names.flight(key.flight_id)["fence"], ahead)
    owner.acquire_or_join(Ask(key, "a"))
    follower.acquire_or_join(Ask(key, "b"))
    own_desk.client.flushall()

    taken = follower.acquire_or_join(Ask(key, "b"))

    assert isinstance(taken, Ownership)
    assert taken.fence == ahead + 2


def test_the_old_owner_cannot_write_after_lost_data_and_a_new_owner(own_desk: Desk) -> None:
    # given an owner, lost data, and a new owner that has finished
    first = own_desk.own("a")
    own_desk.client.flushall()
    second = own_desk.own("b", min_fence=int(first))
    own_desk.finish(second, "b")

    # when the old owner finishes, fails or appends, then it is refused
    for verb in (verbs.FINISH, verbs.FAIL, verbs.APPEND, verbs.MARK_RUNNING, verbs.RELEASE):
        assert own_desk.run(verb, fence=first)[0] == "STALE"
    assert own_desk.ask("c") == ["REPLAY_SUCCESS", second, "answer"]
