"""What an owner tells Redis: what each write does, and that sent twice it does nothing twice."""

from __future__ import annotations

from hashlib import sha1

import pytest

from flightsvc.flight import verbs
from flightsvc.store import Verb
from tests.protocol.desk import Content, Desk, Reply

#: Writes that an owner in the air may send, and what they are answered when they come again.
AGAIN = {
    "mark_running": (verbs.MARK_RUNNING, ["OK"], ["OK"]),
    "append": (verbs.APPEND, ["OK", 2, 0], ["OK", 2, 0]),
    "finish": (verbs.FINISH, ["OK"], ["OK"]),
    "fail": (verbs.FAIL, ["OK"], ["OK"]),
    "release": (verbs.RELEASE, ["OK"], ["STALE"]),
    "abandon": (verbs.ABANDON, ["OK"], ["LOST"]),
}


def _still(content: Content, desk: Desk) -> Content:
    """The same without the heartbeat, which may always move."""
    content.pop(desk.keys["live"], None)
    content.get(desk.keys["meta"], {}).pop("heartbeat", None)
    return content


def _write(desk: Desk, verb: Verb, fence: str, token: str = "a") -> Reply:
    chunks = ("one", "two") if verb is verbs.APPEND else ()
    return desk.run(verb, *chunks, token=token, fence=fence)


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
@pytest.mark.parametrize("name", AGAIN)
def test_a_write_sent_twice_changes_nothing_twice(desk: Desk, name: str, state: str) -> None:
    # given an owner whose reply was lost
    verb, first, again = AGAIN[name]
    fence = desk.reach(state)
    assert _write(desk, verb, fence) == first
    before = _still(desk.content(), desk)

    # when it sends the same again, then all is as it was
    assert _write(desk, verb, fence) == again
    assert _still(desk.content(), desk) == before


def test_a_heartbeat_sent_twice_changes_nothing_but_the_time(desk: Desk) -> None:
    fence = desk.reach("RUNNING")
    desk.beat((desk.flight_id, "a", fence))
    before = _still(desk.content(), desk)

    assert desk.beat((desk.flight_id, "a", fence)) == ["OK", 0]
    assert _still(desk.content(), desk) == before


@pytest.mark.parametrize("name", AGAIN)
def test_a_write_to_a_flight_that_is_not_there_is_lost(desk: Desk, name: str) -> None:
    reply = _write(desk, AGAIN[name][0], "123")

    assert reply == (["LOST", 0, 0] if name == "append" else ["LOST"])
    assert desk.content() == {}


@pytest.mark.parametrize("name", AGAIN)
@pytest.mark.parametrize("end", ["finish", "fail"])
def test_a_write_after_the_end_is_refused(desk: Desk, name: str, end: str) -> None:
    # given an owner that has ended its flight
    fence = desk.reach("RUNNING")
    desk.finish(fence) if end == "finish" else desk.fail(fence)
    before = desk.content()

    # when it writes something else, then it is refused, an end with its own word
    reply = desk.run(AGAIN[name][0], fence=fence, checksum="0ther000", code="OTHER", envelope="x")
    assert reply[0] == ("CONFLICT" if name in ("finish", "fail") else "STALE")
    assert desk.content() == before


@pytest.mark.parametrize("end", ["finish", "fail"])
def test_the_other_end_is_a_conflict(desk: Desk, end: str) -> None:
    fence = desk.reach("RUNNING")
    desk.finish(fence) if end == "finish" else desk.fail(fence)
    before = desk.content()

    assert desk.run(verbs.FAIL if end == "finish" else verbs.FINISH, fence=fence) == ["CONFLICT"]
    assert desk.content() == before


def test_mark_running_is_a_heartbeat_too(desk: Desk) -> None:
    fence = desk.own("a")
    desk.silence(1_000)
    desk.client.pexpire(desk.keys["meta"], 1_000)

    desk.run(verbs.MARK_RUNNING, fence=fence)

    assert desk.meta()["state"] == "RUNNING"
    assert desk.now_ms() - int(desk.meta()["heartbeat"]) < 1_000
    assert desk.ttl("meta") > 1_000


def test_finish_stores_answer_state_and_event_at_once(desk: Desk) -> None:
    # given an owner with a follower
    fence = desk.reach("RUNNING")
    desk.ask("b", worker="w2")

    # when it finishes
    desk.finish(fence, envelope="the answer", codec="zlib+base64", size=77, checksum="0badcafe")

    # then the answer, what describes it, and the event are there, each with its own TTL
    assert desk.client.get(desk.keys["result"]) == b"the answer"
    meta = desk.meta()
    assert (meta["state"], meta["result_fence"]) == ("SUCCEEDED", fence)
    assert (meta["codec"], meta["size"], meta["checksum"]) == ("zlib+base64", "77", "0badcafe")
    assert desk.events()[-1][1] == {"kind": "succeeded", "fence": fence, "chunks": "0"}
    assert 30_000 < desk.ttl("result") <= 40_000
    assert 30_000 < desk.ttl("meta") <= 40_000
    assert 10_000 < desk.ttl("events") <= 15_000
    # and it is no longer in the air
    assert desk.client.exists(desk.keys["live"], desk.keys["interest"]) == 0


def test_fail_tells_the_whole_failure(desk: Desk) -> None:
    # given an owner with a follower
    fence = desk.reach("RUNNING")
    desk.ask("b", worker="w2")

    # when its call failed
    words = {"error_type": "OVERLOAD", "code": "PROVIDER_RATE_LIMITED", "status": "429"}
    words["fallback"] = "a stand-in"
    desk.fail(fence, **words, retryable=1, wait_ms=7_000)

    # then state and event say all of it; the failure is remembered, an answer there is not
    meta = desk.meta()
    assert meta["state"] == "FAILED"
    assert (meta["error_type"], meta["code"], meta["status"]) == tuple(words.values())[:3]
    assert meta["retryable"] == "1"
    assert 2_000 < int(meta["not_before"]) - desk.now_ms() <= 7_000
    told = {"kind": "failed", "fence": fence, "retryable": "1", "wait_ms": "7000"}
    assert desk.events()[-1][1] == {**told, **words}
    assert 10_000 < desk.ttl("meta") <= 20_000
    assert 10_000 < desk.ttl("events") <= 15_000
    assert desk.client.exists(*(desk.keys[key] for key in ("live", "interest", "result"))) == 0


def test_a_failure_is_remembered_as_long_as_it_forbids_a_retry(desk: Desk) -> None:
    fence = desk.own("a")

    desk.fail(fence, wait_ms=90_000, failure_ttl_ms=20_000)

    assert 80_000 < desk.ttl("meta") <= 90_000


def test_release_leaves_a_flight_without_an_owner(desk: Desk) -> None:
    # given an owner on the second attempt
    first = desk.reach("FAILED")
    fence = desk.own("b")

    # when it lets go
    assert desk.run(verbs.RELEASE, token="b", fence=fence) == ["OK"]

    # then nobody owns it, the attempt does not count, and followers hear it
    meta = desk.meta()
    assert (meta["state"], meta["owner"], meta["ownerships"]) == ("PENDING", "", "1")
    assert int(meta["fence"]) > int(first)
    assert desk.events()[-1][1] == {"kind": "released", "fence": fence}
    assert desk.client.zcard(desk.keys["live"]) == 0


def test_abandon_deletes_the_flight_if_nobody_waits(desk: Desk) -> None:
    fence = desk.reach("RUNNING")

    assert desk.run(verbs.ABANDON, fence=fence) == ["OK"]

    assert list(desk.content()) == [desk.keys["fence"]]
    assert desk.ask("b")[0] == "OWNER_NEW"


def test_abandon_is_refused_while_a_follower_holds_a_lease(desk: Desk) -> None:
    # given a follower elsewhere
    fence = desk.reach("RUNNING")
    desk.ask("b", worker="w2")
    before = desk.content()

    # when the owner's last caller leaves, then the flight goes on
    assert desk.run(verbs.ABANDON, fence=fence) == ["JOINED"]
    assert desk.content() == before

    # but not for a lease that has run out
    desk.client.hset(desk.keys["interest"], "w2", desk.now_ms() - 1)
    assert desk.run(verbs.ABANDON, fence=fence) == ["OK"]


def test_who_leaves_gives_up_its_own_lease_and_no_other(desk: Desk) -> None:
    # given an owner whose last caller has left, and followers in two workers
    fence = desk.reach("RUNNING")
    desk.ask("b", worker="w2")
    desk.ask("c", worker="w3")

    # when one of them leaves, however often it says so, then the other keeps the flight
    for _ in range(2):
        assert desk.run(verbs.LEAVE, worker="w2") == ["OK"]
        assert desk.run(verbs.ABANDON, fence=fence) == ["JOINED"]

    # when both have left, then the owner may stop, long before a lease ends
    desk.run(verbs.LEAVE, worker="w3")
    assert desk.beat((desk.flight_id, "a", fence)) == ["OK", 0]
    assert desk.run(verbs.ABANDON, fence=fence) == ["OK"]


def test_leaving_a_flight_that_is_not_there_makes_nothing(desk: Desk) -> None:
    assert desk.run(verbs.LEAVE, worker="w2") == ["OK"]
    assert desk.content() == {}


def test_finish_says_how_many_chunks_there_were(desk: Desk) -> None:
    fence = desk.own("a")
    desk.run(verbs.APPEND, "one", "two", fence=fence)
    desk.finish(fence)
    assert desk.events()[-1][1] == {"kind": "succeeded", "fence": fence, "chunks": "2"}


def test_discard_throws_away_that_answer_once(desk: Desk) -> None:
    fence = desk.reach("SUCCEEDED")
    hashed = sha1(b"answer").hexdigest()

    assert desk.run(verbs.DISCARD, fence=fence, sha1=hashed) == ["OK"]
    assert desk.client.exists(desk.keys["result"]) == 0
    after = desk.content()
    assert desk.run(verbs.DISCARD, fence=fence, sha1=hashed) == ["STALE"]
    assert desk.content() == after
    assert desk.ask("b")[0] == "OWNER_TAKEOVER"


def test_discard_leaves_every_other_answer(desk: Desk) -> None:
    # given an answer that was replaced while a reader found the old one unreadable
    first = desk.reach("SUCCEEDED")
    second = desk.own("b", replay=0)
    desk.finish(second, "b", envelope="newer")
    before = desk.content()

    # then neither the old fence nor the old bytes throw away the new one
    old, new = sha1(b"answer").hexdigest(), sha1(b"newer").hexdigest()
    for fence, hashed in ((first, old), (first, new), (second, old)):
        assert desk.run(verbs.DISCARD, fence=fence, sha1=hashed) == ["STALE"]
    assert desk.content() == before


def test_discard_without_a_flight_changes_nothing(desk: Desk) -> None:
    assert desk.run(verbs.DISCARD, fence="1", sha1=sha1(b"").hexdigest()) == ["STALE"]
    assert desk.content() == {}


def test_wake_keeps_a_stream_of_length_one(desk: Desk) -> None:
    first, second = desk.run(verbs.WAKE, worker="w9"), desk.run(verbs.WAKE, worker="w9")

    entries = desk.client.xrange(desk.names.wake("w9"))

    assert first != second
    assert [entry[0].decode() for entry in entries] == second
