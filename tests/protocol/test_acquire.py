"""The table of ``acquire_or_join``, a test for each row, in the table's order.

The last acquire of each test is the row; what comes before it makes the row's condition true.
"""

from __future__ import annotations

import pytest

from flightsvc.flight import verbs
from tests.protocol.desk import DEADLINE_MS, DETECT_MS, Desk

STATES = ("PENDING", "RUNNING", "SUCCEEDED", "FAILED")


@pytest.mark.parametrize("state", STATES)
def test_row_01_another_digest_is_a_key_conflict(desk: Desk, state: str) -> None:
    # given a flight under an explicit key (its digest is empty), in whatever state
    desk.reach(state)
    before = desk.content()

    # when the key is asked for with another request
    reply = desk.ask("b", digest="d2")

    # then it is refused, and nothing has changed
    assert reply == ["KEY_CONFLICT"]
    assert desk.content() == before


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_row_02_the_owners_own_token_is_the_owner_again(desk: Desk, state: str) -> None:
    # given an owner that never heard the reply to its acquire
    fence = desk.reach(state)
    desk.client.pexpire(desk.keys["meta"], 1_000)
    desk.silence(100)
    before = desk.content()

    # when it asks again
    reply = desk.ask("a")

    # then it is the owner under the same fence; only the heartbeat is new
    assert reply == ["OWNER_NEW", fence, 1]
    after = desk.content()
    heartbeats = [content[desk.keys["meta"]].pop("heartbeat") for content in (before, after)]
    assert heartbeats[0] < heartbeats[1]
    assert after == before
    assert desk.ttl("meta") > 1_000


def test_row_03_who_waited_for_it_gets_the_answer_while_a_later_owner_flies(desk: Desk) -> None:
    # given an answer, and a later ownership by someone who refused replays
    first = desk.reach("SUCCEEDED")
    second = desk.own("b", replay=0)
    assert int(second) > int(first)

    # when someone asks who waited for the first fence
    reply = desk.ask("c", waited_fence=first)

    # then the answer comes inline, with its own fence
    assert reply == ["REPLAY_SUCCESS", first, "answer"]
    assert desk.meta()["owner"] == "b"


def test_row_03_needs_an_answer_of_the_waited_fence_or_later(desk: Desk) -> None:
    desk.reach("SUCCEEDED")
    second = desk.own("b", replay=0)

    assert desk.ask("c", waited_fence=second)[:2] == ["FOLLOWER_WAIT", second]


def test_row_04_a_stored_answer_is_replayed(desk: Desk) -> None:
    # given a flight that succeeded
    fence = desk.reach("SUCCEEDED")
    before = desk.content()

    # when someone asks to whom replays are welcome, then it gets the answer; nothing changes
    assert desk.ask("b") == ["REPLAY_SUCCESS", fence, "answer"]
    assert desk.content() == before


def test_row_05_an_answer_that_is_gone_makes_a_new_owner(desk: Desk) -> None:
    # given a flight that succeeded, whose answer was evicted
    first = desk.reach("SUCCEEDED")
    desk.client.delete(desk.keys["result"])

    # when someone asks, then it is the owner, and the attempts are counted anew
    action, fence, ownerships = desk.ask("b")
    assert (action, ownerships) == ("OWNER_TAKEOVER", 1)
    assert int(fence) > int(first)


def test_row_05_also_for_one_who_waited_for_the_answer_that_is_gone(desk: Desk) -> None:
    first = desk.reach("SUCCEEDED")
    desk.client.delete(desk.keys["result"])

    assert desk.ask("b", waited_fence=first)[0] == "OWNER_TAKEOVER"


def test_row_05_who_refuses_replays_becomes_the_owner(desk: Desk) -> None:
    # given a flight that succeeded
    first = desk.reach("SUCCEEDED")

    # when someone asks who refuses replays, then it is the owner under a higher fence
    action, fence, ownerships = desk.ask("b", replay=0)
    assert (action, ownerships) == ("OWNER_TAKEOVER", 1)
    assert int(fence) > int(first)


def test_row_05_the_old_answer_stays_until_the_new_one(desk: Desk) -> None:
    # given a takeover of a flight that succeeded
    first = desk.reach("SUCCEEDED")
    second = desk.own("b", replay=0)
    kept = desk.ttl("result")

    # when the new owner beats and runs, then the old answer stays as it is
    desk.run(verbs.MARK_RUNNING, token="b", fence=second)
    desk.beat((desk.flight_id, "b", second))
    assert desk.client.get(desk.keys["result"]) == b"answer"
    assert desk.meta()["result_fence"] == first
    assert desk.ttl("result") <= kept

    # until it finishes
    desk.finish(second, "b", envelope="newer")
    assert desk.ask("c") == ["REPLAY_SUCCESS", second, "newer"]


def test_row_06_who_waited_for_a_failure_never_calls_again(desk: Desk) -> None:
    # given a failure that anybody else might retry at once
    fence = desk.reach("FAILED")
    before = desk.content()

    # when someone asks who waited for it, then it is told the failure; nothing changes
    reply = desk.ask("b", waited_fence=fence)
    assert reply == ["REPLAY_FAILURE", fence, "PROVIDER", "PROVIDER_ERROR", "1", "503", "0"]
    assert desk.content() == before


def test_row_06_also_when_it_waited_for_an_earlier_fence(desk: Desk) -> None:
    # given a follower of the first owner, which was silent, and a second one, which failed
    first = desk.own("a")
    desk.silence()
    second = desk.own("b")
    desk.fail(second, "b")

    assert desk.ask("c", waited_fence=first)[:2] == ["REPLAY_FAILURE", second]


def test_row_07_a_retryable_failure_can_be_taken_over(desk: Desk) -> None:
    # given a failure whose time has come
    first = desk.reach("FAILED")

    # when someone else asks, then it is the owner, on the second attempt
    action, fence, ownerships = desk.ask("b")
    assert (action, ownerships) == ("OWNER_TAKEOVER", 2)
    assert int(fence) > int(first)

    # and nothing of the failure is left
    left = {"error_type", "code", "retryable", "status", "not_before"} & set(desk.meta())
    assert left == set()


def test_row_08_a_failure_that_is_not_retryable_stands(desk: Desk) -> None:
    fence = desk.own("a")
    desk.fail(fence, retryable=0, code="PROVIDER_REJECTED", status=400)

    reply = desk.ask("b")

    assert reply[:6] == ["REPLAY_FAILURE", fence, "PROVIDER", "PROVIDER_REJECTED", "0", "400"]
    assert 10_000 < int(reply[6]) <= 20_000  # until it is forgotten


def test_row_08_a_failure_stands_until_not_before(desk: Desk) -> None:
    # given a failure that names its earliest retry
    fence = desk.own("a")
    desk.fail(fence, wait_ms=7_000)

    # when asked before, then it stands, with the time to wait
    reply = desk.ask("b")
    assert reply[:2] == ["REPLAY_FAILURE", fence]
    assert 2_000 < int(reply[6]) <= 7_000

    # and when that time has come, it does not
    desk.client.hset(desk.keys["meta"], "not_before", desk.now_ms())
    assert desk.ask("b")[0] == "OWNER_TAKEOVER"


def test_row_08_a_failure_stands_after_all_ownerships(desk: Desk) -> None:
    # given five owners that failed, one after the other
    for attempt in range(1, 6):
        reply = desk.ask(f"t{attempt}")
        assert reply[2] == attempt
        desk.fail(reply[1], f"t{attempt}")

    # when a sixth asks, then the failure stands until it is forgotten
    refused = desk.ask("t6")
    assert refused[0] == "REPLAY_FAILURE"
    assert 10_000 < int(refused[6]) <= 20_000


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_row_09_a_fresh_owner_is_followed(desk: Desk, state: str) -> None:
    # given an owner with a fresh heartbeat
    fence = desk.reach(state)
    begin = desk.events()[0][0]

    # when someone else asks
    reply = desk.ask("b", worker="w2")

    # then it follows, and knows from where to read and how long to wait
    assert reply[:4] == ["FOLLOWER_WAIT", fence, begin, begin]
    assert 0 < int(reply[4]) <= DETECT_MS + 1
    assert list(desk.client.hkeys(desk.keys["interest"])) == [b"w2"]


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_row_10_a_silent_owner_is_replaced(desk: Desk, state: str) -> None:
    # given an owner that has been silent
    first = desk.reach(state)
    desk.silence(DETECT_MS + 1)

    # when someone else asks, then it is the owner under a higher fence, from the start
    action, fence, ownerships = desk.ask("b")
    assert (action, ownerships) == ("OWNER_TAKEOVER", 2)
    assert int(fence) > int(first)
    assert desk.meta()["state"] == "PENDING"


def test_row_11_no_flight_makes_an_owner(desk: Desk) -> None:
    # given nothing, when someone asks
    action, fence, ownerships = desk.ask("a")

    # then it is the owner, with everything that others must know of it
    assert (action, ownerships) == ("OWNER_NEW", 1)
    meta, now = desk.meta(), desk.now_ms()
    assert meta.pop("created") == meta.pop("heartbeat")
    assert now < int(meta.pop("deadline")) <= now + DEADLINE_MS
    at, event = desk.events()[0]
    assert event == {"kind": "owned", "fence": fence}
    assert meta.pop("events_from") == at
    counted = {"ownerships": "1", "silent": "0", "seq": "0"}
    asked = {"owner": "a", "worker": "w1", "tenant": "acme", "stage": "scoring", "digest": ""}
    assert {"state": "PENDING", "fence": fence, **counted, **asked}.items() <= meta.items()
    assert list(desk.client.zrange(desk.keys["live"], 0, -1)) == [desk.flight_id.encode()]
