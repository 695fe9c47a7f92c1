"""Where two rows of the table of ``acquire_or_join`` fit, the upper one holds."""

from __future__ import annotations

import pytest

from flightsvc.flight import verbs
from tests.protocol.desk import DETECT_MS, Desk


def test_the_digest_comes_before_the_own_token(desk: Desk) -> None:
    desk.own("a", digest="d1")

    assert desk.ask("a", digest="d2") == ["KEY_CONFLICT"]


def test_the_digest_comes_before_a_waited_answer(desk: Desk) -> None:
    fence = desk.own("a", digest="d1")
    desk.finish(fence)

    assert desk.ask("b", digest="d2", waited_fence=fence) == ["KEY_CONFLICT"]


def test_the_digest_comes_before_a_takeover(desk: Desk) -> None:
    desk.own("a", digest="d1")
    desk.silence()

    assert desk.ask("b", digest="d2") == ["KEY_CONFLICT"]
    assert desk.ask("b", digest="d1")[0] == "OWNER_TAKEOVER"


def test_the_own_token_comes_before_a_waited_answer(desk: Desk) -> None:
    first = desk.reach("SUCCEEDED")
    second = desk.own("b", replay=0)

    assert desk.ask("b", waited_fence=first)[1] == second


def test_the_own_token_comes_before_its_own_silence(desk: Desk) -> None:
    # given an owner that slept, and that nobody has replaced
    fence = desk.own("a")
    desk.silence(10 * DETECT_MS)

    # when it asks again, then it goes on under its own fence, and is no longer silent
    assert desk.ask("a") == ["OWNER_NEW", fence, 1]
    assert desk.ask("b")[0] == "FOLLOWER_WAIT"


def test_the_own_token_comes_before_may_own(desk: Desk) -> None:
    fence = desk.own("a")

    assert desk.ask("a", may_own=0) == ["OWNER_NEW", fence, 1]


def test_the_own_token_of_a_finished_flight_owns_nothing(desk: Desk) -> None:
    fence = desk.reach("SUCCEEDED")

    assert desk.ask("a") == ["REPLAY_SUCCESS", fence, "answer"]


def test_a_waited_answer_comes_before_refused_replays(desk: Desk) -> None:
    fence = desk.reach("SUCCEEDED")

    assert desk.ask("b", waited_fence=fence, replay=0) == ["REPLAY_SUCCESS", fence, "answer"]


def test_a_waited_answer_comes_before_a_later_failure(desk: Desk) -> None:
    first = desk.reach("SUCCEEDED")
    second = desk.own("b", replay=0)
    desk.fail(second, "b")

    assert desk.ask("c", waited_fence=first) == ["REPLAY_SUCCESS", first, "answer"]
    assert desk.ask("c", waited_fence=second)[:2] == ["REPLAY_FAILURE", second]


def test_a_waited_answer_comes_before_a_silent_owner(desk: Desk) -> None:
    first = desk.reach("SUCCEEDED")
    desk.own("b", replay=0)
    desk.silence()

    assert desk.ask("c", waited_fence=first) == ["REPLAY_SUCCESS", first, "answer"]
    assert desk.ask("d")[0] == "OWNER_TAKEOVER"


def test_a_later_answer_is_good_for_who_waited_for_an_earlier_fence(desk: Desk) -> None:
    first = desk.own("a")
    desk.silence()
    second = desk.own("b")
    desk.finish(second, "b")

    assert desk.ask("c", waited_fence=first, replay=0) == ["REPLAY_SUCCESS", second, "answer"]


def test_a_failure_of_an_earlier_fence_than_waited_for_is_not_final(desk: Desk) -> None:
    fence = desk.reach("FAILED")

    assert desk.ask("b", waited_fence=int(fence) + 1)[0] == "OWNER_TAKEOVER"


def test_an_unread_failure_comes_before_may_own(desk: Desk) -> None:
    fence = desk.reach("FAILED")

    assert desk.ask("b", waited_fence=fence, may_own=0)[0] == "REPLAY_FAILURE"
    assert desk.ask("b", may_own=0) == ["DECLINED"]


def test_an_old_answer_is_no_replay_while_a_later_owner_flies(desk: Desk) -> None:
    desk.reach("SUCCEEDED")
    second = desk.own("b", replay=0)

    assert desk.ask("c")[:2] == ["FOLLOWER_WAIT", second]


def test_release_comes_before_a_fresh_heartbeat(desk: Desk) -> None:
    # given an owner that has just beaten, and lets go
    first = desk.reach("RUNNING")
    desk.beat((desk.flight_id, "a", first))
    assert desk.run(verbs.RELEASE, fence=first) == ["OK"]

    # when someone asks, then it is the owner at once
    assert desk.ask("b")[0] == "OWNER_TAKEOVER"


@pytest.mark.parametrize("state", [None, "SUCCEEDED", "FAILED", "silent", "released"])
def test_who_may_not_own_is_declined_and_changes_nothing(desk: Desk, state: str | None) -> None:
    # given a flight that needs an owner
    fence = desk.reach("RUNNING" if state in ("silent", "released") else state)
    if state == "silent":
        desk.silence()
    if state == "released":
        desk.run(verbs.RELEASE, fence=fence)
    before = desk.content()

    # when someone asks who may not be one
    reply = desk.ask("b", may_own=0, replay=0)

    # then it is told so, and the flight is as free as before
    assert reply == ["DECLINED"]
    assert desk.content() == before


def test_who_may_not_own_still_follows_and_replays(desk: Desk) -> None:
    fence = desk.reach("RUNNING")
    assert desk.ask("b", may_own=0)[0] == "FOLLOWER_WAIT"

    desk.finish(fence)
    assert desk.ask("b", may_own=0)[0] == "REPLAY_SUCCESS"
