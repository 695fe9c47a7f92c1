"""Answers and contents of both sides, in one form that can be compared."""

from __future__ import annotations

from typing import Any

from flightsvc.flight.coordinator import Conflict, Following, Outcome, Ownership, Refused, Replayed
from tests.proof.deciding import Told
from tests.proof.world import Meta
from tests.proof.writes import PACKED


def words(outcome: Outcome) -> tuple[Any, ...]:
    """An answer, flat."""
    if isinstance(outcome, Ownership):
        return outcome.action.value, outcome.fence, outcome.attempt
    if isinstance(outcome, Following):
        place = outcome.events_from, outcome.last_event
        return "FOLLOWER_WAIT", outcome.fence, *place, outcome.patience_ms
    if isinstance(outcome, Replayed):
        return "REPLAY_SUCCESS", outcome.fence, outcome.envelope
    if isinstance(outcome, Refused):
        f = outcome.failure
        said = f.error_type.value, f.code, f.retryable, f.status
        return "REPLAY_FAILURE", outcome.fence, *said, f.retry_after_ms
    return ("KEY_CONFLICT",) if isinstance(outcome, Conflict) else ("DECLINED",)


def expected_words(told: Told) -> tuple[Any, ...]:
    """The model's answer, in the same form."""
    if told.action.startswith("OWNER"):
        return told.action, told.fence, told.attempt
    if told.action == "FOLLOWER_WAIT":
        assert told.events_from is not None
        assert told.last_event is not None
        return told.action, told.fence, told.events_from.id, told.last_event.id, told.wait
    if told.action == "REPLAY_SUCCESS":
        return told.action, told.fence, told.envelope
    if told.action == "REPLAY_FAILURE":
        e = told.error
        assert e is not None
        return told.action, told.fence, e.error_type, e.code, e.retryable, e.status, told.wait
    return (told.action,)


def hash_of(meta: Meta) -> dict[str, str]:
    """As Redis must hold it."""
    known = ("state", "fence", "owner", "worker", "digest", "ownerships", "silent", "action")
    times = ("created", "heartbeat", "deadline", "seq")
    fields = {name: str(getattr(meta, name)) for name in (*known, *times)}
    fields |= {"tenant": "", "stage": "scoring", "events_from": meta.events_from.id}
    if meta.result_fence:
        fields |= {"result_fence": str(meta.result_fence), "checksum": meta.checksum}
        fields |= {"codec": PACKED[0], "size": str(PACKED[1])}
    if meta.error is not None:
        error = {**vars(meta.error), "retryable": int(meta.error.retryable)}
        fields |= {name: str(value) for name, value in error.items()}
    return fields


def plain(key: str, content: Any) -> Any:
    """As the model holds it."""
    part = key.partition(":")[0]
    if part == "result":
        return content
    if part == "fence":
        return int(content)
    if part == "events":
        return [(entry.decode(), _pairs(fields)) for entry, fields in content]
    pairs = _pairs(content)
    return pairs if part == "meta" else {name: int(value) for name, value in pairs.items()}


def _pairs(flat: list[bytes]) -> dict[str, str]:
    return {flat[i].decode(): flat[i + 1].decode() for i in range(0, len(flat), 2)}
