"""The answers that no model gives, as schemas: what :mod:`flightsvc.web.render` and its callers
write by hand. Tests hold them against real answers."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from flightsvc.flight.state import FlightState, Role
from flightsvc.interview.demeanor import DemeanorAnswer
from flightsvc.interview.evaluation import EvaluationAnswer
from flightsvc.interview.extraction import ExtractionAnswer
from flightsvc.interview.follow_up import FollowUpAnswer

FlightId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Code = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Warned = Literal["input_truncated", "stale_answer", "smaller_model"]


class Shown(BaseModel):
    """Nothing stands in an answer that its schema does not name."""

    model_config = ConfigDict(extra="forbid")


class Problem(Shown):
    """What went wrong (RFC 9457)."""

    #: its kind, from the code
    type: Annotated[str, Field(pattern=r"^urn:problem-type:flightsvc:")]
    #: the kind in words
    title: str
    #: HTTP status
    status: Annotated[int, Field(ge=400, le=599)]
    #: one sentence for whoever programs the client
    detail: str
    #: its kind, for programs
    code: Code
    #: whether the same request may succeed later
    retryable: bool
    #: one sentence for the user, in the language of Content-Language
    message: str = ""
    #: the flight that failed, if one did
    flight_id: FlightId = ""
    #: what is done in an answer's place, where that is no answer
    fallback: Literal["refuse", "manual_review"] = "refuse"


class UnderWay(Shown):
    """An answer that is not there yet."""

    #: the flight that brings it
    flight_id: FlightId
    #: how far that is
    state: FlightState
    #: address of the answer
    location: str


class Guidance(Shown):
    """What stands in for an answer where there is none: a text for the user. Never stored."""

    #: which kind of stand-in it is
    fallback: Literal["template", "clarify", "ask_input"]
    #: the failure that it stands in for
    code: Code
    #: what is not as asked for
    warnings: list[Warned]
    #: one or two sentences for the user, in the language of Content-Language
    message: str = ""
    #: name of the text
    template: str = ""
    #: what the user is asked for
    field: str = ""
    #: how long to wait for it, in s
    wait_s: Annotated[int, Field(ge=0)] = 0


class Marked(BaseModel):
    """What an answer has on top that came from another route than the usual one."""

    #: which one
    fallback: Literal["smaller_model", "truncate", "last_good"]
    #: the failure of the usual one
    code: Code
    #: what is not as asked for
    warnings: list[Warned]
    #: one sentence for the user, in the language of Content-Language
    message: str = ""
    #: age of an older answer, in s
    age_s: Annotated[float, Field(ge=0)] = 0


@lru_cache(maxsize=16)
def marked(answer: type[BaseModel]) -> type[BaseModel]:
    """A stage's answer from another route than the usual one."""
    doc = f"{answer.__name__} from another route than the usual one. Never stored."
    return create_model(f"Marked{answer.__name__}", __base__=(Marked, answer), __doc__=doc)


class Step(Shown):
    """A flight has come to a step."""

    flight_id: FlightId
    #: time since the request came, in ms
    age_ms: Annotated[int, Field(ge=0)]


class Arrival(Shown):
    """The answer, and how it came about."""

    flight_id: FlightId
    #: what this caller was to the flight
    role: Role
    #: number of the flight's ownership; 0: without Redis
    fence: Annotated[int, Field(ge=0)]
    #: which stand-in it is, or null
    fallback: str | None
    answer: dict[str, Any]


@lru_cache(maxsize=16)
def arrival(answer: type[BaseModel]) -> type[BaseModel]:
    """The last event of a stream, with an answer of a stage."""
    name = answer.__name__.removesuffix("Answer")
    return create_model(
        f"{name}Arrival", __base__=Arrival, __doc__=Arrival.__doc__, answer=(answer, ...)
    )


@lru_cache(maxsize=16)
def replacement(answer: type[BaseModel]) -> type[BaseModel]:
    """The same with what stands in for it."""
    name = answer.__name__.removesuffix("Answer")
    doc = "What stands in for an answer, and how it came about."
    kinds: Any = marked(answer) | Guidance
    return create_model(f"{name}Replacement", __base__=Arrival, __doc__=doc, answer=(kinds, ...))


class FlightShown(Shown):
    """How a flight stands. Ages are by Redis's clock."""

    flight_id: FlightId
    #: which kind of question it answers
    stage: str
    state: FlightState
    #: number of its ownership
    fence: Annotated[int, Field(ge=0)]
    age_ms: int
    #: since its owner last said that it lives
    heartbeat_age_ms: int
    #: how many owners it had
    ownerships: Annotated[int, Field(ge=0)]
    #: callers of other workers that wait for it
    followers: Annotated[int, Field(ge=0)]
    #: how it failed, if it did
    error_code: Code | None
    #: whether asking again may help
    retryable: bool | None
    #: of the stored answer, in bytes
    size: int | None


class Row(Shown):
    """An answer that is kept."""

    #: which answer of the session it is
    key: str
    flight_id: FlightId
    #: of the flight; 0: of a worker without Redis
    fence: Annotated[int, Field(ge=0)]
    #: SHA-256 of the file that it is about
    file_digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None
    #: when the first answer to it was kept
    created_at: Moment
    #: when this one was
    written_at: Moment
    #: the question, as far as it is kept
    asked: dict[str, Any]


class QuestionSetRow(Row):
    """Questions from a résumé, as kept."""

    answer: ExtractionAnswer


class EvaluationRow(Row):
    """A judged answer, as kept."""

    answer: EvaluationAnswer


class FollowUpRow(Row):
    """A decision on a further question, as kept."""

    answer: FollowUpAnswer


class DemeanorRow(Row):
    """A judged picture, as kept."""

    answer: DemeanorAnswer


class SessionShown(Shown):
    """Everything that is kept of an interview, each list the oldest first."""

    session_id: str
    question_sets: list[QuestionSetRow]
    evaluations: list[EvaluationRow]
    follow_ups: list[FollowUpRow]
    demeanor: list[DemeanorRow]


class Alive(Shown):
    """The process answers."""

    status: Literal["ok"]


class Readiness(Shown):
    """Whether requests are welcome."""

    status: Literal["ready", "not_ready", "draining"]
    #: `degraded`: it does not answer as it should; `off`: mode `local`
    redis: Literal["ok", "degraded", "off"]


class PauseShown(Shown):
    """Who paused a module."""

    by: str
    reason: str
    since: Moment
    #: whether the checklist did it
    automatic: bool


class FlagShown(Shown):
    """Why a module needs a person."""

    #: the failure that came again and again
    code: str
    #: how often, without a success between
    failures: int
    since: Moment


class RollBackShown(Shown):
    """Who let a stage ask its former model."""

    by: str
    reason: str
    #: the failure that asked for it, or empty
    code: str
    since: Moment


class ModuleShown(Shown):
    """A stage or a provider."""

    #: such as `stage:evaluation`
    name: str
    paused: PauseShown | None
    needs_person: FlagShown | None
    rolled_back: RollBackShown | None


class ModulesShown(Shown):
    """All modules."""

    modules: list[ModuleShown]
    #: `ok`, or why Redis could not be asked: then it is as it was last known
    redis: str
    #: how old that is, in s
    age_s: Annotated[float, Field(ge=0)] | None
