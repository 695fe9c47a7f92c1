"""What happened, for those who act on it: one typed event for each kind of state change.

The checklist says that a code changes a state; nobody here changes it. An :class:`EventSink` passes
the event on to whoever keeps sessions, users, routes or sync jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Protocol, Self, get_type_hints

from flightsvc.checklist.model import Code, StateKind


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEvent:
    """What all events say. Nothing in it holds a prompt, an answer or a token.

    :param code: the checklist's code that asked for the change.
    :param stage: the kind of request.
    :param tenant: whose session it is.
    :param session_id: the session; empty where none is concerned.
    :param ttl_s: how long the change holds, in s; 0: until somebody undoes it.
    :param failures: how many failures of the code in a row led to it.
    :param flight_id: the flight that failed, 32 hex digits, and ``fence`` its ownership.
    """

    kind: ClassVar[StateKind]

    code: str
    stage: str
    tenant: str = ""
    session_id: str = ""
    ttl_s: int = 0
    failures: int = 1
    trace_id: str = ""
    flight_id: str = ""
    fence: int = 0
    fingerprint: str = ""

    def to_fields(self) -> dict[str, str]:
        """As flat text, for a stream; ``kind`` first."""
        values = {each.name: str(getattr(self, each.name)) for each in fields(self)}
        return {"kind": self.kind, **values}

    @classmethod
    def _from(cls, values: Mapping[str, str]) -> Self:
        types = get_type_hints(cls)
        known = [each.name for each in fields(cls) if each.name in values]
        return cls(**{key: types[key](values[key]) for key in known})


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFrozen(StateEvent):
    """The session takes no AI requests for a while; a person may take over."""

    kind: ClassVar[StateKind] = "freeze_session"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserBlocked(StateEvent):
    """The session's user gets no AI for a while.

    :param input_hash: SHA-256 of the input that led to it, for a reviewer.
    """

    kind: ClassVar[StateKind] = "block_user"
    input_hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewAsked(StateEvent):
    """A person has to decide.

    :param queue: who reviews, as the code's fallback names it.
    """

    kind: ClassVar[StateKind] = "manual_review"
    queue: str = ""
    input_hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRolledBack(StateEvent):
    """The stage goes back to its former model.

    :param model: the model that is left.
    """

    kind: ClassVar[StateKind] = "rollback_model"
    provider: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncStopped(StateEvent):
    """A sync job stops."""

    kind: ClassVar[StateKind] = "stop_sync"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clarifying(StateEvent):
    """The session waits until the user says which of several things is meant."""

    kind: ClassVar[StateKind] = "clarifying"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitingInput(StateEvent):
    """The session waits for something from the user.

    :param field: what it waits for, as the code's fallback names it.
    """

    kind: ClassVar[StateKind] = "awaiting_input"
    field: str = ""


class EventSink(Protocol):
    """Where events go. It never raises and never makes a request wait long."""

    def emit(self, event: StateEvent, /) -> None:
        """Pass an event on."""


EVENTS: dict[StateKind, type[StateEvent]] = {
    event.kind: event
    for event in (
        SessionFrozen,
        UserBlocked,
        ReviewAsked,
        ModelRolledBack,
        SyncStopped,
        Clarifying,
        AwaitingInput,
    )
}


def event_of(code: Code, *, stage: str, **facts: str | int) -> StateEvent | None:
    """The event that a failure of this code asks for; None if it changes no state.

    :param stage: the kind of request.
    :param facts: further fields of the event; those that its kind does not have are left out.
        ``ttl_s``, ``queue`` and ``field`` come from the checklist.
    """
    if code.state is None:
        return None
    params = code.fallback.params
    known: dict[str, object] = {
        **facts,
        "queue": params.get("queue", ""),
        "field": params.get("field", ""),
        "code": code.name,
        "stage": stage,
        "ttl_s": code.state.ttl_s,
    }
    kind = EVENTS[code.state.kind]
    return kind._from({key: str(value) for key, value in known.items()})


def read_event(values: Mapping[str, str]) -> StateEvent:
    """An event from its :meth:`~StateEvent.to_fields`; fields of a newer version are left out.

    :raises KeyError: an unknown kind, or a field is missing.
    """
    return EVENTS[values["kind"]]._from(values)  # type: ignore[index]
