"""What a follower is told: from where to read, how long to wait; and what it leaves behind."""

from __future__ import annotations

import time

import pytest

from flightsvc.flight import verbs
from tests.protocol.desk import DETECT_MS, Desk
from tests.protocol.test_takeover import SLACK_MS


def test_the_wait_is_what_is_left_of_the_owners_silence(desk: Desk) -> None:
    # given an owner whose last heartbeat is 3 s old, of 5 s
    desk.own("a")
    desk.silence(3_000)

    left = int(desk.ask("b")[4])

    assert 0 < left <= 2_001


def test_the_wait_is_at_most_what_is_left_of_the_deadline(desk: Desk) -> None:
    # given an owner that beats, with 1 s left
    desk.own("a", deadline_ms=1_000)

    left = int(desk.ask("b")[4])

    assert 0 < left <= 1_001


def test_after_the_wait_and_not_before_it_the_owner_can_be_replaced(desk: Desk) -> None:
    # given a follower that was told how long to wait, and an owner that stays silent
    given = {"takeover_detect_ms": 300}
    desk.own("a", **given)
    told_at = desk.now_ms()
    reply = desk.ask("b", **given)
    assert reply[0] == "FOLLOWER_WAIT"
    began = time.monotonic()

    # when it asks all the time
    while desk.ask("c", worker="w3", **given)[0] == "FOLLOWER_WAIT":
        assert time.monotonic() - began < 10

    # then it has not come earlier than told (the reply itself took some of the time)
    assert desk.now_ms() >= told_at + int(reply[4]) - 1


def test_at_the_told_time_the_first_ask_is_enough(desk: Desk) -> None:
    given = {"takeover_detect_ms": 200}
    desk.own("a", **given)
    reply = desk.ask("b", **given)

    until = time.monotonic() + int(reply[4]) / 1000
    while time.monotonic() < until:
        time.sleep(0.005)

    assert desk.ask("b", **given)[0] == "OWNER_TAKEOVER"


def test_a_followers_lease_outlives_its_wait_and_is_renewed(desk: Desk) -> None:
    # given followers on two workers
    desk.own("a")
    desk.ask("b", worker="w2")
    desk.ask("c", worker="w3")
    leases = desk.client.hgetall(desk.keys["interest"])
    now = desk.now_ms()
    assert set(leases) == {b"w2", b"w3"}
    assert all(now + DETECT_MS < int(end) <= now + 2 * DETECT_MS for end in leases.values())
    assert 0 < desk.ttl("interest") <= 30_000

    # when one of them asks again, then its lease is longer, and it is still one
    desk.client.hset(desk.keys["interest"], "w2", now)
    desk.ask("b", worker="w2")
    assert int(desk.client.hget(desk.keys["interest"], "w2")) > now + DETECT_MS
    assert desk.client.hlen(desk.keys["interest"]) == 2


def test_the_owner_hears_how_many_workers_follow(desk: Desk) -> None:
    # given followers on two workers, one of whose leases has run out
    fence = desk.own("a")
    desk.ask("b", worker="w2")
    desk.ask("c", worker="w3")
    assert desk.beat((desk.flight_id, "a", fence)) == ["OK", 2]
    desk.client.hset(desk.keys["interest"], "w2", desk.now_ms() - 1)

    assert desk.beat((desk.flight_id, "a", fence)) == ["OK", 1]


def test_joining_touches_nothing_of_the_owners(desk: Desk) -> None:
    # given an owner
    desk.reach("RUNNING")
    for key in ("meta", "events"):
        desk.client.pexpire(desk.keys[key], 5_000)
    before = desk.content()

    # when someone joins, then only the interest is new, and no lease of the owner is longer
    desk.ask("b")
    after = desk.content()
    assert after.pop(desk.keys["interest"]).keys() == {"w1"}
    assert after == before
    assert max(desk.ttl("meta"), desk.ttl("events")) <= 5_000


def test_the_last_event_is_where_a_joiner_reads_on(desk: Desk) -> None:
    # given an owner that has told something already
    fence = desk.own("a")
    desk.run(verbs.APPEND, "one", "two", fence=fence)
    told = [at for at, _ in desk.events()]

    # when someone joins: the stream began with the ownership, the last event is the last chunk
    reply = desk.ask("b")
    assert reply[2:4] == [told[0], told[-1]]

    # then what comes after that id is what it has not missed
    desk.finish(fence)
    after = desk.client.xread({desk.keys["events"]: reply[3]})[0][1]
    assert [event[b"kind"] for _, event in after] == [b"succeeded"]


def test_each_ownership_has_its_own_beginning(desk: Desk) -> None:
    # given an ownership that told something and was lost, and a second one
    first = desk.own("a")
    desk.run(verbs.APPEND, "AAA", fence=first)
    desk.silence()
    second = desk.own("b")
    desk.run(verbs.APPEND, "BBB", token="b", fence=second)

    # when someone joins and reads from the beginning of the second
    reply = desk.ask("c")
    read = desk.client.xread({desk.keys["events"]: reply[2]})[0][1]

    # then it sees the second's events alone
    assert [event[b"data"] for _, event in read] == [b"BBB"]
    assert {event[b"fence"] for _, event in read} == {second.encode()}


def test_a_deleted_stream_begins_again_for_the_next_joiner(desk: Desk) -> None:
    # given an owner whose stream was deleted
    fence = desk.own("a")
    desk.client.delete(desk.keys["events"])

    # when someone joins, then there is a stream to wait on, with the owner's fence
    reply = desk.ask("b")
    assert reply[:2] == ["FOLLOWER_WAIT", fence]
    assert desk.events() == [(reply[3], {"kind": "owned", "fence": fence})]

    # and a second joiner adds nothing to it, and the end reaches both
    assert desk.ask("c", worker="w3")[3] == reply[3]
    desk.finish(fence)
    after = desk.client.xread({desk.keys["events"]: reply[3]})[0][1]
    assert [event[b"kind"] for _, event in after] == [b"succeeded"]


def test_a_trimmed_stream_still_says_where_to_read_on(desk: Desk) -> None:
    # given an owner whose stream was trimmed to nothing
    fence = desk.own("a")
    desk.run(verbs.APPEND, "one", fence=fence)
    last = desk.events()[-1][0]
    desk.client.xtrim(desk.keys["events"], maxlen=0)

    assert desk.ask("b")[3] == last


@pytest.mark.parametrize("joined", [False, True])
def test_who_appends_to_a_deleted_stream_begins_it_again(desk: Desk, joined: bool) -> None:
    # given an owner that has appended two chunks to a stream that was deleted (and that a joiner
    # may have begun again)
    fence = desk.own("a")
    desk.run(verbs.APPEND, "one", "two", fence=fence)
    desk.client.delete(desk.keys["events"])
    if joined:
        desk.ask("b")

    # when it appends the third, then it is told to begin again: a joiner must not miss two
    assert desk.run(verbs.APPEND, "three", fence=fence, first=2) == ["GAP", 0, int(joined)]
    reply = desk.run(verbs.APPEND, "one", "two", "three", fence=fence, first=0)
    assert reply == ["OK", 3, int(joined)]
    chunks = [event["data"] for _, event in desk.events() if event["kind"] == "chunk"]
    assert chunks == ["one", "two", "three"]


@pytest.mark.parametrize("end", ["finish", "fail"])
def test_an_end_forgets_the_followers(desk: Desk, end: str) -> None:
    fence = desk.own("a")
    desk.ask("b", worker="w2")

    desk.finish(fence) if end == "finish" else desk.fail(fence)

    assert desk.client.exists(desk.keys["interest"]) == 0


def test_a_follower_asks_no_more_than_it_was_told_to(desk: Desk) -> None:
    # given a heartbeat from the future, but not from so far that it would count as old
    desk.own("a")
    desk.silence(-DETECT_MS + SLACK_MS)

    # then the lease holds as long as the wait
    reply = desk.ask("b", worker="w2")
    lease = int(desk.client.hget(desk.keys["interest"], "w2"))
    assert lease >= desk.now_ms() + int(reply[4]) - 1


@pytest.mark.parametrize("end", ["append", "finish", "fail", "release", "give_up"])
def test_an_event_in_a_stream_that_was_lost_has_a_ttl_too(desk: Desk, end: str) -> None:
    # given an owner whose stream was deleted
    fence = desk.reach("RUNNING")
    desk.client.delete(desk.keys["events"])

    # when the flight's next event begins it again (the desk looks for keys without a TTL)
    if end == "give_up":
        desk.silence()
        desk.client.hset(desk.keys["meta"], "silent", 3)
        assert desk.ask("b")[0] == "REPLAY_FAILURE"
    else:
        verb = next(verb for verb in verbs.ALL if verb.name == end)
        assert desk.run(verb, *(["x"] if end == "append" else []), fence=fence)[0] == "OK"

    # then it is told, and its stream expires
    assert len(desk.events()) == 1
    assert desk.ttl("events") > 0
