"""A full server: what ends a flight passes, what begins one is refused, and that whole.

A server refuses a script's writes only up to the first one that it lets pass; a script that began
with such a one would be half done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha1

import pytest

from flightsvc.flight import verbs
from flightsvc.store import StoreError
from tests.protocol.desk import Content, Desk


@pytest.fixture
def desk(desk: Desk) -> Iterator[Desk]:
    """A desk whose server is no longer full after the test."""
    yield desk
    desk.server.set("maxmemory", 0)


def _fill(desk: Desk) -> tuple[Content, dict[str, int]]:
    """From now on the server uses more than it may.

    :returns: everything in it, and the TTLs of the flight's keys.
    """
    for key in ("meta", "events", "result", "live", "interest"):
        desk.client.pexpire(desk.keys[key], 25_000)
    desk.server.set("maxmemory", 1_000)
    return desk.content(), {key: desk.ttl(key) for key in desk.keys}


def _refused(desk: Desk, ask: Callable[[], object]) -> None:
    """The question is refused for want of memory, and everything is as it was."""
    before, ttls = _fill(desk)
    with pytest.raises(StoreError):
        ask()
    assert desk.content() == before
    assert all(desk.ttl(key) <= ttl for key, ttl in ttls.items())


def test_the_error_says_that_memory_is_wanting(desk: Desk) -> None:
    # an owner repeats its finish for a shorter time to a full server
    _fill(desk)

    with pytest.raises(StoreError) as refused:
        desk.ask("a")

    assert refused.value.kind == "oom"


def test_a_new_flight_is_refused_whole(desk: Desk) -> None:
    _refused(desk, lambda: desk.ask("a"))


@pytest.mark.parametrize("state", ["RUNNING", "SUCCEEDED", "FAILED"])
def test_a_takeover_is_refused_whole(desk: Desk, state: str) -> None:
    desk.reach(state)
    if state == "RUNNING":
        desk.silence()

    _refused(desk, lambda: desk.ask("b", replay=0))


def test_a_takeover_whose_stream_is_gone_is_refused_whole(desk: Desk) -> None:
    desk.reach("RUNNING")
    desk.silence()
    desk.client.delete(desk.keys["events"])

    _refused(desk, lambda: desk.ask("b"))


def test_a_takeover_of_a_released_flight_is_refused_whole(desk: Desk) -> None:
    desk.run(verbs.RELEASE, fence=desk.reach("RUNNING"))

    _refused(desk, lambda: desk.ask("b"))


def test_giving_a_flight_up_is_refused_whole(desk: Desk) -> None:
    desk.reach("RUNNING")
    desk.silence()
    desk.client.hset(desk.keys["meta"], "silent", 3)

    _refused(desk, lambda: desk.ask("b"))


def test_asking_again_is_refused_whole(desk: Desk) -> None:
    desk.own("a")

    _refused(desk, lambda: desk.ask("a"))


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_an_answer_is_refused_whole(desk: Desk, state: str) -> None:
    fence = desk.reach(state)
    desk.ask("b", worker="w2")

    _refused(desk, lambda: desk.run(verbs.FINISH, fence=fence, envelope="x" * 10_000))


def test_a_newer_answer_is_refused_and_the_old_one_stays(desk: Desk) -> None:
    desk.reach("SUCCEEDED")
    second = desk.own("b", replay=0)

    _refused(desk, lambda: desk.run(verbs.FINISH, token="b", fence=second, envelope="newer"))
    assert desk.client.get(desk.keys["result"]) == b"answer"


@pytest.mark.parametrize("gone", [False, True])
def test_chunks_are_refused_whole(desk: Desk, gone: bool) -> None:
    fence = desk.reach("RUNNING")
    desk.run(verbs.APPEND, "one", fence=fence)
    if gone:
        desk.client.delete(desk.keys["events"])

    _refused(desk, lambda: desk.run(verbs.APPEND, "one", "two", "three", fence=fence))


def test_mark_running_and_wake_are_refused_whole(desk: Desk) -> None:
    fence = desk.own("a")

    _refused(desk, lambda: desk.run(verbs.MARK_RUNNING, fence=fence))
    _refused(desk, lambda: desk.run(verbs.WAKE))


def test_heartbeats_pass(desk: Desk) -> None:
    # given an owner and a follower on a server that is full
    fence = desk.reach("RUNNING")
    desk.ask("b", worker="w2")
    desk.silence(2_000)
    _fill(desk)

    # when the owner beats, then everything is renewed
    assert desk.beat((desk.flight_id, "a", fence)) == ["OK", 1]
    assert desk.now_ms() - int(desk.meta()["heartbeat"]) < 2_000
    assert min(desk.ttl(key) for key in ("meta", "events", "interest", "live")) > 25_000


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_a_failure_passes_whole(desk: Desk, state: str) -> None:
    # given an owner whose answer could not be stored
    fence = desk.reach(state)
    _fill(desk)
    with pytest.raises(StoreError):
        desk.run(verbs.FINISH, fence=fence)

    # when it says so, then state and event are there
    desk.fail(fence, code="RESULT_NOT_STORED", error_type="UNEXPECTED")
    assert desk.meta()["state"] == "FAILED"
    assert desk.events()[-1][1]["code"] == "RESULT_NOT_STORED"
    assert desk.client.zcard(desk.keys["live"]) == 0


def test_what_gives_memory_back_passes(desk: Desk) -> None:
    # given three flights on a full server: one to release, one to abandon, one to discard
    fence = desk.reach("RUNNING")
    other, third = Desk(desk.server, desk.namespace), Desk(desk.server, desk.namespace)
    abandoned, stored = other.reach("RUNNING"), third.reach("SUCCEEDED")
    _fill(desk)

    assert desk.run(verbs.RELEASE, fence=fence) == ["OK"]
    assert desk.events()[-1][1]["kind"] == "released"
    assert other.run(verbs.ABANDON, fence=abandoned) == ["OK"]
    assert third.run(verbs.DISCARD, fence=stored, sha1=sha1(b"answer").hexdigest()) == ["OK"]


@pytest.mark.parametrize("gone", [False, True])
def test_followers_join_though_they_leave_no_lease(desk: Desk, gone: bool) -> None:
    # given an owner on a full server, whose stream may be gone
    fence = desk.reach("RUNNING")
    if gone:
        desk.client.delete(desk.keys["events"])
    _fill(desk)

    # when someone asks, then it follows
    reply = desk.ask("b", worker="w2")
    assert reply[:2] == ["FOLLOWER_WAIT", fence]
    assert desk.client.exists(desk.keys["interest"]) == 0
    # and the end reaches it
    desk.fail(fence, code="RESULT_NOT_STORED")
    after = desk.client.xread({desk.keys["events"]: reply[3]})[0][1]
    assert [event[b"kind"] for _, event in after] == [b"failed"]


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED"])
def test_replays_pass(desk: Desk, state: str) -> None:
    fence = desk.reach(state)
    _fill(desk)

    reply = desk.ask("b", waited_fence=fence)

    assert reply[0] == ("REPLAY_SUCCESS" if state == "SUCCEEDED" else "REPLAY_FAILURE")


def test_with_memory_again_all_goes_on(desk: Desk) -> None:
    # given an owner whose answer was refused
    fence = desk.reach("RUNNING")
    _fill(desk)
    with pytest.raises(StoreError):
        desk.run(verbs.FINISH, fence=fence)

    # when there is memory again, then the repeated finish stores it
    desk.server.set("maxmemory", 0)
    desk.finish(fence)
    assert desk.ask("b") == ["REPLAY_SUCCESS", fence, "answer"]
