"""The heartbeat of a worker's flights of one shard."""

from __future__ import annotations

import os

from flightsvc.flight import verbs
from tests.protocol.desk import SHARDS, Desk


def _neighbour(desk: Desk) -> Desk:
    """Another flight of the same shard."""
    shard = desk.names.shard_of(desk.flight_id)
    flight_id = f"{int(os.urandom(14).hex(), 16) * SHARDS + shard:032x}"
    return Desk(desk.server, desk.namespace, flight_id)


def test_a_heartbeat_renews_every_lease(desk: Desk) -> None:
    fence = desk.reach("RUNNING")
    desk.ask("b", worker="w2")
    for key in ("meta", "events", "interest", "live"):
        desk.client.pexpire(desk.keys[key], 1_000)
    desk.silence(1_000)

    assert desk.beat((desk.flight_id, "a", fence)) == ["OK", 1]

    assert min(desk.ttl(key) for key in ("meta", "events", "interest", "live")) > 1_000
    assert desk.now_ms() - int(desk.meta()["heartbeat"]) < 1_000
    score = desk.client.zscore(desk.keys["live"], desk.flight_id)
    assert f"{score:.0f}" == desk.meta()["heartbeat"]


def test_each_flight_of_a_heartbeat_gets_its_own_answer(desk: Desk) -> None:
    # given an owned flight, one that was taken over, one that was lost, one with a follower
    owned, taken, lost, followed = (_neighbour(desk) for _ in range(4))
    fences = [one.own("a") for one in (owned, taken, lost, followed)]
    taken.silence()
    taken.own("b")
    lost.client.delete(lost.keys["meta"])
    followed.ask("c", worker="w3")

    # when all of them are beaten at once
    flights = (owned, taken, lost, followed)
    reply = desk.beat(*((one.flight_id, "a", f) for one, f in zip(flights, fences, strict=True)))

    # then each is answered in its place
    assert reply == ["OK", 0, "STALE", 0, "LOST", 0, "OK", 1]
    assert lost.meta() == {}


def test_a_heartbeat_of_nothing_is_answered_with_nothing(desk: Desk) -> None:
    assert desk.beat() == []
    assert desk.content() == {}


def test_a_lost_flight_does_not_come_back_by_a_heartbeat(desk: Desk) -> None:
    fence = desk.own("a")
    desk.client.delete(*(desk.keys[key] for key in ("meta", "events", "live")))

    assert desk.beat((desk.flight_id, "a", fence)) == ["LOST", 0]

    assert list(desk.content()) == [desk.keys["fence"]]


def test_heartbeats_prune_the_dead_from_the_list(desk: Desk) -> None:
    # given a flight that nobody has beaten for longer than a lease lives, and a late one
    dead, late = _neighbour(desk), _neighbour(desk)
    for one, age in ((dead, 31_000), (late, 20_000)):
        one.own("a")
        one.client.zadd(one.keys["live"], {one.flight_id: desk.now_ms() - age})

    # when a neighbour beats
    fence = desk.own("a")
    desk.beat((desk.flight_id, "a", fence))

    # then only the dead one is gone
    listed = {member.decode() for member in desk.client.zrange(desk.keys["live"], 0, -1)}
    assert listed == {late.flight_id, desk.flight_id}


def test_the_list_holds_what_is_in_the_air_and_nothing_else(desk: Desk) -> None:
    # given a flight for each way to end, and one that goes on
    ends = (verbs.FINISH, verbs.FAIL, verbs.RELEASE, verbs.ABANDON)
    for verb in ends:
        one = _neighbour(desk)
        assert one.run(verb, fence=one.reach("RUNNING")) == ["OK"]
    desk.reach("RUNNING")

    assert desk.client.zrange(desk.keys["live"], 0, -1) == [desk.flight_id.encode()]


def test_many_flights_go_into_one_heartbeat(desk: Desk) -> None:
    flights = [_neighbour(desk) for _ in range(60)]
    owned = [(one.flight_id, "a", one.own("a")) for one in flights]

    assert desk.beat(*owned) == ["OK", 0] * 60
