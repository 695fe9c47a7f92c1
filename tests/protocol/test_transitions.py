"""The table of legal transitions is what the scripts do: no more, no less."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flightsvc.flight import verbs
from flightsvc.flight.state import TRANSITIONS, FlightState
from flightsvc.store import Verb
from tests.protocol.desk import Desk

STATES: tuple[FlightState | None, ...] = (None, *FlightState)
#: An end that differs from every end that a flight of these tests has had.
OTHER: dict[str, str | int] = {"checksum": "0ther000", "code": "OTHER", "envelope": "other"}


def _write(verb: Verb) -> Callable[[Desk, str], bool]:
    return lambda desk, fence: desk.run(verb, fence=fence, **OTHER)[0] == "OK"


def _own(desk: Desk, fence: str) -> bool:
    if desk.client.exists(desk.keys["meta"]):
        desk.silence()
    return str(desk.ask("b", replay=0)[0]).startswith("OWNER")


def _give_up(desk: Desk, fence: str) -> bool:
    if desk.client.exists(desk.keys["meta"]):
        desk.silence()
        desk.client.hset(desk.keys["meta"], "silent", 3)
    desk.ask("b", replay=0)
    return desk.meta().get("code") == "FLIGHT_OWNERS_LOST"


#: How each verb of the table is tried on a flight, by its owner; whether it was done.
DRIVE: dict[str, Callable[[Desk, str], bool]] = {
    "own": _own,
    "give_up": _give_up,
    "mark_running": _write(verbs.MARK_RUNNING),
    "finish": _write(verbs.FINISH),
    "fail": _write(verbs.FAIL),
    "release": _write(verbs.RELEASE),
    "abandon": _write(verbs.ABANDON),
    "forget": _write(verbs.FORGET),
}


def _state(desk: Desk) -> FlightState | None:
    state = desk.meta().get("state")
    return FlightState(state) if state else None


def test_every_verb_that_changes_a_state_is_driven() -> None:
    assert DRIVE.keys() == TRANSITIONS.keys()


@pytest.mark.parametrize("verb", DRIVE)
@pytest.mark.parametrize("state", STATES)
def test_a_transition_is_legal_where_the_table_says_so(
    desk: Desk, verb: str, state: FlightState | None
) -> None:
    # given a flight in a state, when its owner tries the verb
    fence = desk.reach(state and state.value)
    before = desk.content()
    done = DRIVE[verb](desk, fence)

    # then it is done exactly where the table has it, with the state that the table has
    assert done == (state in TRANSITIONS[verb])
    if done:
        assert _state(desk) == TRANSITIONS[verb][state]
    elif verb != "give_up":
        assert desk.content() == before


@pytest.mark.parametrize("state", STATES)
def test_what_is_not_in_the_table_changes_no_state(desk: Desk, state: FlightState | None) -> None:
    fence = desk.reach(state and state.value)

    desk.beat((desk.flight_id, "a", fence))
    desk.run(verbs.APPEND, "x", fence=fence)
    desk.run(verbs.DISCARD, fence=fence, sha1="00")
    desk.run(verbs.INSPECT)
    desk.run(verbs.WAKE)
    desk.ask("b", may_own=0)

    assert _state(desk) is state
