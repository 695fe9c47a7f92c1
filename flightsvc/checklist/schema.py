"""What may stand in a checklist file: the fields of each table, and what they may hold."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from flightsvc.checklist.model import Action, Cause, Channel, Level, Param, Severity, StateKind

#: stands for a policy or a state change: none
NONE = "none"

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
CodeName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$", max_length=64)]
Text = Annotated[str, Field(min_length=1, max_length=500)]
Word = Annotated[str, Field(min_length=1, max_length=100)]
Wait = Annotated[int, Field(ge=100)]
Seconds = Annotated[int, Field(ge=1, le=31_536_000)]
Limit = Annotated[int, Field(ge=0, le=1_000_000)]

#: params of each action: those it needs, those it may have
ACTION_PARAMS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "truncate": (frozenset({"max_tokens"}), frozenset({"marker"})),
    "template": (frozenset({"template"}), frozenset()),
    "last_good": (frozenset({"max_age_s"}), frozenset({"refresh"})),
    "ask_input": (frozenset({"field"}), frozenset({"wait_s"})),
    "manual_review": (frozenset({"queue"}), frozenset()),
}


class Entry(BaseModel):
    """A table whose fields are all known and have the type that is asked for."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class RetryEntry(Entry):
    """`[retry.NAME]`"""

    #: waits before the retries on the primary route, in ms
    delays_ms: Annotated[list[Wait], Field(min_length=1, max_length=2)]
    #: wait before the one attempt on the fallback route, in ms
    fallback_route_after_ms: Wait | None = None


class FallbackEntry(Entry):
    """`[fallback.NAME]`"""

    #: what is done
    action: Action
    #: `truncate`: longest input, in tokens
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    #: `truncate`: what is put where the input was cut
    marker: Word | None = None
    #: `template`: which text or page takes the answer's place
    template: Name | None = None
    #: `last_good`: oldest answer that still serves, in s
    max_age_s: Seconds | None = None
    #: `last_good`: whether a new one is fetched meanwhile, in the background
    refresh: bool | None = None
    #: `ask_input`: what the user is asked for
    field: Name | None = None
    #: `ask_input`: how long the user's answer is waited for, in s: the client is told, and the
    #: state `awaiting_input` holds as long
    wait_s: Seconds | None = None
    #: `manual_review`: who reviews
    queue: Name | None = None

    def params(self) -> dict[str, Param]:
        """What is given beside the action."""
        return self.model_dump(exclude={"action"}, exclude_none=True)


class AlertEntry(Entry):
    """`[alert.NAME]`"""

    #: where it is sent
    channels: Annotated[list[Channel], Field(min_length=1)]
    #: `P1` at once, `P2` the same day, `P3` in the report
    severity: Severity
    #: window, in s; at most one message in it
    window_s: Seconds
    #: so many failures in the window
    count: Annotated[int, Field(ge=1)] | None = None
    #: this share of the calls in the window
    rate: Annotated[float, Field(gt=0, le=1)] | None = None
    #: with a rate: fewer calls than this say nothing
    min_calls: Annotated[int, Field(ge=1)] | None = None


class StateEntry(Entry):
    """`state` of a code"""

    #: what changes
    kind: StateKind | Literal["none"]
    #: how long, in s; 0: until it is undone
    ttl_s: Annotated[int, Field(ge=0, le=31_536_000)] = 0
    #: so many failures in a row bring it about
    after: Annotated[int, Field(ge=1, le=1_000_000)] = 1


class CodeEntry(Entry):
    """`[codes.NAME]`"""

    #: what it reaches: `L1` one request, `L2` the session, `L3` the service
    level: Level
    #: where it comes from
    cause: Cause
    #: the kind of failure that a flight ends with
    failure_type: Literal["TIMEOUT", "OVERLOAD", "PROVIDER", "VALIDATION", "UNEXPECTED"]
    #: whether a later call of the same question may succeed
    retryable: bool
    #: retry policy; `none` or left out: no retry
    retry: str = NONE
    #: a retry would do harm, so none may be given
    forbids_retry: bool = False
    #: fallback policy
    fallback: str
    #: what changes beside the answer
    state: StateEntry | None = None
    #: alert policy; `none` or left out: nobody is told
    alert: str = NONE
    #: so many failures in a row need a person; 0: never; left out: the list's own number
    trips_after: Limit | None = None
    #: whether they also pause the stage or provider
    pauses: bool = False
    #: HTTP status for a client
    status: Annotated[int, Field(ge=400, le=599)]
    #: whether a user is ever told
    user_sees: bool = True
    #: when it happens, in Chinese
    about_zh: Text
    #: when it happens, in English
    about_en: Text
    #: what the user is told, in Chinese
    message_zh: Text | None = None
    #: what the user is told, in English
    message_en: Text | None = None


Words = Word | Annotated[list[Word], Field(min_length=1)]
Number = Annotated[int, Field(ge=0)] | Word
Numbers = Number | Annotated[list[Number], Field(min_length=1)]


class MatchEntry(Entry):
    """`[[match]]`"""

    #: the code
    to: str
    #: the provider that was asked
    provider: Name | None = None
    #: class of the error, or of one it inherits from
    exception: Words | None = None
    #: code that the error carries, where it is none of the list
    code: Words | None = None
    #: HTTP status that the provider answered with; a range is "500-599"
    upstream_status: Numbers | None = None
    #: code in the provider's answer; a range of numbers is "20356-20362"
    upstream_code: Numbers | None = None
    #: regular expression that fits a part of the error's message
    text: Word | None = None


class ListEntry(Entry):
    """What stands above the first table"""

    #: failures of one code in a row that need a person
    trips_after: Limit
    #: alert policy by which that is told; `none` or left out: nobody is told
    trips_alert: str = NONE
