"""Events say what changes, flat enough for a stream, and come back as they were."""

from __future__ import annotations

from typing import get_args

import pytest

from flightsvc.checklist.events import (
    EVENTS,
    AwaitingInput,
    EventSink,
    ModelRolledBack,
    ReviewAsked,
    StateEvent,
    UserBlocked,
    event_of,
    read_event,
)
from flightsvc.checklist.model import StateKind
from tests.checklist.lists import merged


def test_each_state_change_has_an_event() -> None:
    assert set(EVENTS) == set(get_args(StateKind))


def test_each_code_that_changes_a_state_has_its_event() -> None:
    for code in merged():
        event = event_of(code, stage="evaluation", session_id="s1")
        assert (event is None) == (code.state is None)
        if event is not None and code.state is not None:
            assert (event.kind, event.code, event.ttl_s) == (
                code.state.kind,
                code.name,
                code.state.ttl_s,
            )
            assert (event.stage, event.session_id) == ("evaluation", "s1")


def test_an_event_has_what_its_kind_needs_and_nothing_else() -> None:
    checklist = merged()
    facts = {"stage": "chat", "model": "m", "input_hash": "ab", "fence": 7, "failures": 3}

    blocked = event_of(checklist.code("AI_INPUT_SENSITIVE"), **facts)  # type: ignore[arg-type]
    assert isinstance(blocked, UserBlocked)
    assert (blocked.input_hash, blocked.ttl_s, blocked.fence) == ("ab", 259_200, 7)
    assert not hasattr(blocked, "model")

    asked = event_of(checklist.code("AI_ORDER_NOT_FOUND"), **facts)  # type: ignore[arg-type]
    assert isinstance(asked, AwaitingInput)
    assert asked.field == "order_id"

    paid = event_of(checklist.code("AI_PAYMENT_FAILED"), **facts)  # type: ignore[arg-type]
    assert isinstance(paid, ReviewAsked)
    assert paid.queue == "payment"

    back = event_of(checklist.code("AI_MODEL_DRIFT_DETECTED"), **facts)  # type: ignore[arg-type]
    assert isinstance(back, ModelRolledBack)
    assert (back.model, back.failures) == ("m", 3)


@pytest.mark.parametrize("kind", EVENTS)
def test_an_event_comes_back_from_its_fields(kind: StateKind) -> None:
    event = EVENTS[kind](code="X", stage="chat", session_id="会话", ttl_s=5, fence=2**60)
    sent = event.to_fields()
    assert all(isinstance(value, str) for value in sent.values())
    assert next(iter(sent)) == "kind"
    assert read_event(sent) == event
    assert read_event({**sent, "of a newer version": "x"}) == event


def test_a_sink_is_anything_that_takes_events() -> None:
    class Kept:
        def __init__(self) -> None:
            self.events: list[StateEvent] = []

        def emit(self, event: StateEvent, /) -> None:
            self.events.append(event)

    kept = Kept()
    sink: EventSink = kept
    event = event_of(merged().code("AI_INFRA_UNAVAILABLE"), stage="chat")
    assert event is not None
    sink.emit(event)
    assert kept.events == [event]
