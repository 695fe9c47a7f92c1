"""H12: who is not the owner changes nothing and raises no TTL."""

from __future__ import annotations

import pytest

from flightsvc.flight import verbs
from flightsvc.store import Verb
from tests.protocol.desk import Desk

WRITES = [
    pytest.param(verb, id=verb.name)
    for verb in (
        verbs.MARK_RUNNING,
        verbs.APPEND,
        verbs.FINISH,
        verbs.FAIL,
        verbs.RELEASE,
        verbs.ABANDON,
    )
]
STATES = ("PENDING", "RUNNING", "SUCCEEDED", "FAILED")
#: How someone is not the owner: another token, another fence, or both.
OTHERS = {"token": (True, False), "fence": (False, True), "both": (True, True)}


def _other(how: str, fence: str) -> tuple[str, str]:
    token, number = OTHERS[how]
    return "x" if token else "a", str(int(fence) - 1) if number else fence


def _shorten(desk: Desk) -> None:
    """Make every TTL so short that a raise would show."""
    for key in ("meta", "events", "interest", "result"):
        desk.client.pexpire(desk.keys[key], 5_000)


def _longest(desk: Desk) -> int:
    return max(desk.ttl(key) for key in ("meta", "events", "interest", "result"))


@pytest.mark.parametrize("how", OTHERS)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("verb", WRITES)
def test_h12_writes_of_others_are_refused(desk: Desk, verb: Verb, state: str, how: str) -> None:
    # given a flight, followed by someone while it is in the air
    fence = desk.reach(state)
    if state in ("PENDING", "RUNNING"):
        desk.ask("b", worker="w2")
    _shorten(desk)
    before = desk.content()

    # when someone writes who is not its owner
    token, other = _other(how, fence)
    chunks = ("x",) if verb is verbs.APPEND else ()
    reply = desk.run(verb, *chunks, token=token, fence=other)

    # then it is refused, nothing is changed and no lease is longer
    assert reply[0] == "STALE"
    assert desk.content() == before
    assert _longest(desk) <= 5_000


@pytest.mark.parametrize("how", OTHERS)
@pytest.mark.parametrize("state", STATES)
def test_h12_heartbeats_of_others_renew_nothing(desk: Desk, state: str, how: str) -> None:
    fence = desk.reach(state)
    if state in ("PENDING", "RUNNING"):
        desk.ask("b", worker="w2")
    _shorten(desk)
    before = desk.content()

    token, other = _other(how, fence)
    reply = desk.beat((desk.flight_id, token, other))

    assert reply == ["STALE", 0]
    assert desk.content() == before
    assert _longest(desk) <= 5_000


def test_h12_a_released_flight_is_nobodys(desk: Desk) -> None:
    # given a flight that was let go
    fence = desk.reach("RUNNING")
    desk.run(verbs.RELEASE, fence=fence)
    _shorten(desk)
    before = desk.content()

    # when the former owner goes on, or someone without a token tries
    for verb in (verbs.MARK_RUNNING, verbs.APPEND, verbs.FINISH, verbs.FAIL, verbs.ABANDON):
        assert desk.run(verb, fence=fence)[0] == "STALE"
    assert desk.beat((desk.flight_id, "a", fence)) == ["STALE", 0]

    assert desk.content() == before
    assert _longest(desk) <= 5_000


def test_h12_followers_and_refused_askers_renew_no_lease_of_the_owner(desk: Desk) -> None:
    desk.own("a", digest="d1")
    _shorten(desk)

    desk.ask("b", digest="d1", worker="w2")
    desk.ask("b", digest="d2", worker="w3")

    assert max(desk.ttl("meta"), desk.ttl("events")) <= 5_000
