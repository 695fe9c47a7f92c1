"""The schema of the log: every field of a line, in one place, and what may stand in it.

docs/logs.md holds it as a table; a test compares them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Event = Literal["request", "failure", "alert", "log"]
Kind = Literal["string", "integer", "number", "list"]

REQUEST: Event = "request"
FAILURE: Event = "failure"
ALERT: Event = "alert"
LOG: Event = "log"
EVENTS: tuple[Event, ...] = (REQUEST, FAILURE, ALERT, LOG)

#: the fields that every request line and every failure line has, if only as null (second article,
#: 2.2, and what a flight adds)
GOLDEN = (
    "trace_id",
    "session_id",
    "input_hash",
    "retry_count",
    "fallback_action",
    "code",
    "fingerprint",
    "flight_id",
    "fence",
    "role",
)

#: longest text of one field, and of a message, in characters
TEXT_LENGTH, MESSAGE_LENGTH = 128, 2_000

_SESSION = re.compile(r"[A-Za-z0-9._~:@-]{1,128}")
_CODE_UNCLEAN = re.compile(r"[^A-Za-z0-9_.:-]")
#: what stands for a session id that no session can have: nobody's words get in by this door
NO_SESSION = "(invalid)"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a line.

    :param events: the lines that have it.
    :param help: what it says.
    """

    name: str
    kind: Kind
    events: tuple[Event, ...]
    help: str


_CALLS: tuple[Event, ...] = (REQUEST, FAILURE)
_TOLD: tuple[Event, ...] = (REQUEST, FAILURE, ALERT)

#: in the order of a line
FIELDS: tuple[Field, ...] = (
    Field("time", "string", EVENTS, "when, in UTC, to the ms (RFC 3339)"),
    Field("level", "string", EVENTS, "`debug`, `info`, `warning`, `error` or `critical`"),
    Field("event", "string", EVENTS, "`request`, `failure`, `alert` or `log`: the kind of line"),
    Field("logger", "string", (LOG,), "the part that speaks"),
    Field("message", "string", (ALERT, LOG), "what it says"),
    Field("trace_id", "string", _TOLD, "W3C trace; of a failure, the first caller's"),
    Field("span_id", "string", (REQUEST,), "this request within its trace"),
    Field("session_id", "string", _CALLS, "the interview; of a failure, the first caller's"),
    Field("tenant", "string", _CALLS, "whose it is"),
    Field("stage", "string", _TOLD, "the kind of question to the model"),
    Field("method", "string", (REQUEST,), "HTTP method"),
    Field("route", "string", (REQUEST,), "name of the route, `none` for no route; never the path"),
    Field("status", "integer", (REQUEST,), "HTTP status of the answer"),
    Field("duration_ms", "number", _CALLS, "of the request; of the guarded call, for a failure"),
    Field("input_hash", "string", _CALLS, "equal for equal input; 32 hex digits"),
    Field("input_length", "integer", _CALLS, "length of the input, in characters"),
    Field("retry_count", "integer", _CALLS, "retries of the call that this caller began"),
    Field("fallback_action", "string", _CALLS, "what stood in for the model's answer"),
    Field("code", "string", _TOLD, "what failed; null where nothing did"),
    Field("fingerprint", "string", _TOLD, "equal for failures of one kind and place; 16 hex"),
    Field("warnings", "list", _CALLS, "what of an answer is not as asked for"),
    Field("flight_id", "string", _TOLD, "the flight behind it; 32 hex digits"),
    Field("fence", "integer", _CALLS, "number of the ownership; 0 without Redis"),
    Field("role", "string", _CALLS, "`owner`, `follower`, `replay`, `l1` or `local`"),
    Field("alert", "string", (ALERT,), "name of the alert policy"),
    Field("alert_id", "string", (ALERT,), "this alert, in every channel"),
    Field("severity", "string", (ALERT,), "`P1`, `P2` or `P3`"),
    Field("count", "integer", (ALERT,), "failures with this code within the window"),
    Field("rate", "number", (ALERT,), "their share of all calls, where the policy asks for one"),
    Field("window_s", "integer", (ALERT,), "the window, in s"),
    Field("needs_person", "string", (ALERT,), "the stage or provider whose failures need a person"),
    Field("channels", "list", (ALERT,), "where else it is sent"),
    Field(
        "detail",
        "string",
        (FAILURE,),
        "the error's message, if it cannot hold a prompt or an answer",
    ),
    Field("stack", "string", (FAILURE, LOG), "types and places of what nobody foresaw"),
    Field("worker", "string", EVENTS, "number of the worker; null in the master"),
    Field("pid", "integer", EVENTS, "process id"),
)

#: the fields of each kind of line that come from whoever writes it, in order
_BASE = frozenset({"time", "level", "event", "logger", "message", "stack", "worker", "pid"})
OWN: dict[Event, tuple[str, ...]] = {
    event: tuple(one.name for one in FIELDS if event in one.events and one.name not in _BASE)
    for event in EVENTS
}


def text(value: str, limit: int = TEXT_LENGTH) -> str | None:
    """A text as a field: bounded; None for an empty one. Escaping is the formatter's work."""
    return (value if len(value) <= limit else value[: limit - 1] + "…") or None


def session(value: str) -> str | None:
    """A session id as a field. What cannot be one is not repeated."""
    if not value:
        return None
    return value if _SESSION.fullmatch(value) else NO_SESSION


def code(value: str) -> str | None:
    """A code (an action, a role, …) as a field: some of ``A-Z a-z 0-9 _ . : -``."""
    if len(value) <= 64 and value.isalnum() and value.isascii():  # nearly all: ids and words
        return value
    return _CODE_UNCLEAN.sub("_", value[:64]) or None
