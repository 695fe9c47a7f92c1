"""When an owner is replaced, and when it is not."""

from __future__ import annotations

import pytest

from flightsvc.flight import verbs
from tests.protocol.desk import DETECT_MS, Desk

#: far more than a slow machine needs for two commands, far less than the time to detect
SLACK_MS = 2_000


def test_a_heartbeat_just_within_the_time_is_fresh(desk: Desk) -> None:
    desk.own("a")
    desk.silence(DETECT_MS - SLACK_MS)

    assert desk.ask("b")[0] == "FOLLOWER_WAIT"


def test_a_heartbeat_a_little_in_the_future_is_fresh(desk: Desk) -> None:
    desk.own("a")
    desk.silence(-DETECT_MS + SLACK_MS)

    reply = desk.ask("b")

    assert reply[0] == "FOLLOWER_WAIT"
    # until it would count as old by today's clock
    assert DETECT_MS < int(reply[4]) <= 2 * DETECT_MS - SLACK_MS + 1


def test_a_heartbeat_from_the_far_future_is_old(desk: Desk) -> None:
    # given a heartbeat by the clock of a master that was ahead
    first = desk.own("a")
    desk.silence(-DETECT_MS - SLACK_MS)

    # when someone asks, then it is the owner, once: its own heartbeat is by the right clock
    action, fence, _ = desk.ask("b")
    assert action == "OWNER_TAKEOVER"
    assert int(fence) > int(first)
    assert desk.ask("c")[0] == "FOLLOWER_WAIT"


def test_an_owner_past_its_deadline_is_replaced_though_it_beats(desk: Desk) -> None:
    # given an owner that beats, but whose time is up
    fence = desk.reach("RUNNING")
    desk.client.hset(desk.keys["meta"], "deadline", desk.now_ms() - 1)
    assert desk.beat((desk.flight_id, "a", fence)) == ["OK", 0]

    # when someone asks, then it is the owner, and the old one hears of it
    assert desk.ask("b")[0] == "OWNER_TAKEOVER"
    assert desk.beat((desk.flight_id, "a", fence)) == ["STALE", 0]


def test_a_released_flight_is_not_counted_as_an_attempt(desk: Desk) -> None:
    # given a flight that was let go again and again
    for attempt in range(8):
        reply = desk.ask(f"t{attempt}")
        assert reply[2] == 1
        assert desk.run(verbs.RELEASE, token=f"t{attempt}", fence=reply[1]) == ["OK"]

    # then the next owner is still on the first attempt, and nobody was silent
    action, _, ownerships = desk.ask("last")
    assert (action, ownerships) == ("OWNER_TAKEOVER", 1)
    assert desk.meta()["silent"] == "0"


def test_the_releaser_itself_may_take_it_again_under_a_higher_fence(desk: Desk) -> None:
    first = desk.own("a")
    desk.run(verbs.RELEASE, fence=first)

    action, fence, _ = desk.ask("a")

    assert action == "OWNER_TAKEOVER"
    assert int(fence) > int(first)


def _three_silent(desk: Desk) -> str:
    """Four owners, each silent.

    :returns: the last one's fence.
    """
    fence = desk.own("t0", worker="w0")
    for number in range(1, 4):
        desk.silence()
        action, fence, ownerships = desk.ask(f"t{number}")
        assert (action, ownerships) == ("OWNER_TAKEOVER", number + 1)
    desk.silence()
    return fence


def test_after_three_takeovers_of_silent_owners_the_flight_fails(desk: Desk) -> None:
    # given a request that seems to kill every worker
    fence = _three_silent(desk)

    # when the next one asks, then it does not get it: the flight failed, not to be retried
    lost = ["UNEXPECTED", "FLIGHT_OWNERS_LOST", "0", "503"]
    reply = desk.ask("t4")
    assert reply[:6] == ["REPLAY_FAILURE", fence, *lost]
    assert 10_000 < int(reply[6]) <= 20_000
    assert desk.meta()["state"] == "FAILED"

    # and everybody hears it: those who follow by an event, those who come later by asking
    event = desk.events()[-1][1]
    assert event.pop("wait_ms") == "20000"
    words = dict(zip(("error_type", "code", "retryable", "status"), lost, strict=True))
    assert event == {"kind": "failed", "fence": fence, **words}
    assert desk.ask("t5")[:6] == reply[:6]
    assert 0 < desk.ttl("meta") <= 20_000
    assert desk.client.zcard(desk.keys["live"]) == 0


def test_an_owner_that_was_given_up_writes_nothing_more(desk: Desk) -> None:
    # given the last silent owner, which wakes up after the flight was failed for it
    fence = _three_silent(desk)
    desk.ask("t4")
    before = desk.content()

    # when it goes on, then everything is refused
    own = {"token": "t3", "fence": fence}
    assert desk.beat((desk.flight_id, "t3", fence)) == ["STALE", 0]
    assert desk.run(verbs.FINISH, **own) == ["STALE"]
    assert desk.run(verbs.FAIL, **own) == ["STALE"]
    assert desk.content() == before


def test_who_may_not_own_does_not_fail_the_flight(desk: Desk) -> None:
    _three_silent(desk)

    assert desk.ask("t4", may_own=0) == ["DECLINED"]
    assert desk.meta()["state"] == "PENDING"


def test_an_answer_forgets_the_silent_owners(desk: Desk) -> None:
    # given two silent owners before one that answers
    desk.own("t0")
    for number in range(1, 3):
        desk.silence()
        fence = desk.own(f"t{number}")
    desk.finish(fence, "t2")

    # when the flight is made anew, then it is counted anew
    assert desk.ask("t3", replay=0)[2] == 1
    assert desk.meta()["silent"] == "0"


def test_failures_do_not_count_as_silence(desk: Desk) -> None:
    for attempt in range(4):
        fence = desk.own(f"t{attempt}")
        desk.fail(fence, f"t{attempt}")

    assert desk.ask("t4")[0] == "OWNER_TAKEOVER"
    assert desk.meta()["silent"] == "0"


@pytest.mark.parametrize("before", ["new", "answered", "failed", "silent", "released"])
def test_a_lost_reply_can_be_asked_again_and_is_the_same(desk: Desk, before: str) -> None:
    # given an ownership that began in one of the five ways
    if before != "new":
        fence = desk.own("a")
        if before == "answered":
            desk.finish(fence)
        elif before == "failed":
            desk.fail(fence)
        elif before == "silent":
            desk.silence()
        else:
            desk.run(verbs.RELEASE, fence=fence)
    reply = desk.ask("b", replay=0)

    # when its reply was lost and it asks again, then the reply is the same
    assert desk.ask("b", replay=0) == reply


def test_a_worker_that_takes_over_is_no_longer_its_own_follower(desk: Desk) -> None:
    # given a worker that followed, and took over from a silent owner
    desk.own("a", worker="w1")
    desk.ask("b", worker="w2")
    desk.silence()
    fence = desk.own("b", worker="w2")

    # when its last caller leaves, then nobody else is interested
    assert desk.beat((desk.flight_id, "b", fence)) == ["OK", 0]
    assert desk.run(verbs.ABANDON, token="b", fence=fence) == ["OK"]


def test_a_flight_that_is_owned_again_and_again_does_not_grow(desk: Desk) -> None:
    # given a key whose events never get the time to expire
    def fly(number: int) -> None:
        fence = desk.own(f"t{number}", replay=0)
        desk.run(verbs.APPEND, "x", "y", "z", token=f"t{number}", fence=fence)
        desk.finish(fence, f"t{number}")

    for number in range(4):
        fly(number)
    some = len(desk.events())
    for number in range(4, 24):
        fly(number)

    # then only the events of the last ownerships are kept
    assert len(desk.events()) <= some
