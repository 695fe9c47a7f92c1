"""What a route says of itself for ``/openapi.json``.

It stands beside the route, in its :func:`~flightsvc.web.routes.add_route`::

    add_route(
        blueprint, "/v1/things/<thing>", "thing", show, "GET",
        operations={"GET": Operation(
            summary="A thing",
            tag="Things",
            who=TENANT,
            answers=(Answer(200, "it", json_of(Thing)),),
            problems=(NotFound,),
        )},
    )

Only what is the route's own is said there. What follows from something else is added to it: the
address's parts, tokens and their 401 and 403, what can be wrong with a body, a fault of ours, and,
where a model is asked, every failure that the checklist has for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from flightsvc.errors import FlightSvcError, InvalidInput

#: who may ask
Who = Literal["anybody", "tenant", "operator"]
#: what stands behind an answer: nothing; a call of the model, in whose answer's place something can
#: stand; one where nothing does; the model's service without a call
Asks = Literal["", "model", "chat", "service"]
#: how tenants sign in: by tokens of ours, as their host has it, or not at all
SignIn = Literal["tokens", "host", ""]

ANYBODY: Who = "anybody"
TENANT: Who = "tenant"
OPERATOR: Who = "operator"

JSON, EVENTS, HTML = "application/json", "text/event-stream", "text/html"

#: one model, several of which any fits, or a JSON Schema as it is
Shape = type[BaseModel] | tuple[type[BaseModel], ...] | Mapping[str, Any]


class Told(NamedTuple):
    """A kind of problem."""

    status: int
    code: str

    @classmethod
    def of(cls, kind: type[FlightSvcError]) -> Told:
        """As its class says."""
        return cls(kind.status, kind.default_code)


@dataclass(frozen=True, slots=True)
class Parameter:
    """Something that a request says beside its body.

    :param place: where it stands.
    """

    name: str
    place: Literal["path", "query", "header"]
    says: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    example: str | None = None


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A body as ``read_json`` reads it.

    :param wrong: raised for one that does not fit.
    """

    schema: type[BaseModel]
    example: Mapping[str, Any] | None = None
    wrong: type[FlightSvcError] = InvalidInput


@dataclass(frozen=True, slots=True)
class Fields:
    """A body as ``read_fields`` reads it."""

    schema: type[BaseModel]


@dataclass(frozen=True, slots=True)
class Form:
    """A body as ``read_upload`` reads it.

    :param file: what the field `file` holds, in a sentence.
    :param types: media types of such a file.
    :param fields: what may be said beside it.
    """

    file: str
    types: tuple[str, ...]
    fields: type[BaseModel] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One way in which a route answers, other than by a problem.

    :param bodies: media type → what it holds; empty: no body.
    :param headers: those that are always there, by their names in
        :data:`flightsvc.web.openapi_words.HEADERS`.
    :param maybe: those that may be.
    :param events: where it can be a stream of events too: name of an event → its data.
    :param chunks: the same of events without a name: the data of each kind; a text is that very
        one.
    :param leads_to: where to go on from here: names of routes (``.name``: in the same blueprint)
        whose addresses are made of the same session and the answer's ``Flight-Id``.
    """

    status: int
    says: str
    bodies: Mapping[str, Shape] = field(default_factory=dict)
    headers: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()
    events: Mapping[str, type[BaseModel]] = field(default_factory=dict)
    chunks: tuple[type[BaseModel] | str, ...] = ()
    leads_to: tuple[str, ...] = ()


def _known(status: int, codes: list[str]) -> dict[str, Any]:
    return {"status": {"const": status}, "code": {"enum": codes}}


@dataclass(frozen=True, slots=True)
class Faults:
    """How a route tells that it failed; only a door that speaks somebody else's language has its
    own.

    :param schema: of the body; None: problem details.
    :param known: what its properties are besides, where its status and codes are known.
    :param spelled: a code as it stands there.
    :param maybe: headers that it may have, beside those of all problems.
    """

    mimetype: str
    schema: type[BaseModel] | None = None
    known: Callable[[int, list[str]], Mapping[str, Any]] = _known
    spelled: Callable[[str], str] = str
    maybe: tuple[str, ...] = ()


PROBLEMS = Faults("application/problem+json")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operation:
    """One method of one route.

    :param summary: a few words; ``says`` the rest, in Markdown.
    :param tag: the group that it stands in.
    :param answers: all, other than problems.
    :param problems: those that nothing else of this says.
    :param asks: whether it fails as a call of the model does, too.
    """

    summary: str
    says: str = ""
    tag: str = "Service"
    who: Who = ANYBODY
    parameters: tuple[Parameter, ...] = ()
    body: JsonBody | Fields | Form | None = None
    answers: tuple[Answer, ...] = ()
    problems: tuple[type[FlightSvcError] | Told, ...] = ()
    asks: Asks = ""
    faults: Faults = PROBLEMS


def json_of(shape: Shape) -> Mapping[str, Shape]:
    """It as the body of an answer."""
    return {JSON: shape}
