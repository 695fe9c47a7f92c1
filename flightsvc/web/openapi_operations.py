"""Operations as an OpenAPI document has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import count
from typing import NamedTuple

from flightsvc.checklist import Checklist
from flightsvc.web import openapi_words as words
from flightsvc.web.body import FIELDS
from flightsvc.web.openapi_errors import problems, says
from flightsvc.web.openapi_schemas import Json, event_schema, form_schema, reference
from flightsvc.web.openapi_shapes import Problem
from flightsvc.web.openapi_terms import (
    EVENTS,
    OPERATOR,
    TENANT,
    Answer,
    Fields,
    Form,
    JsonBody,
    Operation,
    Parameter,
    Shape,
    SignIn,
)

#: headers that a problem may have, whatever the route
_OF_A_PROBLEM = ("Content-Language", "Flight-Id", "Flight-Fence", "Flight-Fallback")

#: what an answer and its request say of the addresses that it leads to
_KNOWN = {"session_id": "$request.path.session_id", "flight_id": "$response.header.Flight-Id"}


class Served(NamedTuple):
    """One method of one address."""

    path: str
    method: str
    operation: Operation
    #: name of the route in the app
    endpoint: str

    @property
    def parts(self) -> list[str]:
        """Names of what is variable in the address."""
        return re.findall(r"\{(\w+)\}", self.path)

    @property
    def name(self) -> str:
        """It as one operation of the document."""
        return f"{self.endpoint}.{self.method.lower()}".replace(".", "_")


class Writer:
    """Writes operations as the document has them."""

    def __init__(
        self,
        everything: Sequence[Served],
        checklist: Checklist,
        sign_in: SignIn,
        known: Mapping[str, Json],
    ) -> None:
        self._everything = everything
        self._checklist = checklist
        self._sign_in = sign_in
        self.schemas = dict(known)
        #: answers that several operations give, by name
        self.responses: dict[str, Json] = {}

    def operation(self, served: Served) -> Json:
        """One operation."""
        it = served.operation
        told: Json = {"operationId": served.name, "tags": [it.tag], "summary": it.summary}
        if it.says:
            told["description"] = it.says
        parameters = [*self._path(served.parts), *map(_parameter, it.parameters)]
        if parameters:
            told["parameters"] = parameters
        if it.body is not None:
            told["requestBody"] = {"required": True, "content": self._content(it.body)}
        told["responses"] = self._responses(served)
        security = self._security(it)
        if security:
            told["security"] = [{security: []}]
        return told

    def _security(self, it: Operation) -> str:
        if it.who == OPERATOR:
            return words.OPERATOR_TOKEN
        return words.TOKEN if it.who == TENANT and self._sign_in == "tokens" else ""

    def _path(self, parts: Iterable[str]) -> Iterator[Json]:
        for part in parts:
            known = words.PATH.get(part) or Parameter(part, "path", "")
            yield {**_parameter(known), "required": True}

    def _content(self, body: JsonBody | Fields | Form) -> Json:
        if isinstance(body, Fields):
            return {FIELDS: {"schema": reference(body.schema)}}
        if isinstance(body, JsonBody):
            held: Json = {"schema": reference(body.schema)}
            if body.example is not None:
                held["examples"] = {"good": {"value": dict(body.example)}}
            return {"application/json": held}
        fields = self.schemas[body.fields.__name__] if body.fields else {}
        encoding = {"file": {"contentType": ", ".join(body.types)}}
        schema = form_schema(fields, body.file)
        return {"multipart/form-data": {"schema": schema, "encoding": encoding}}

    def _responses(self, served: Served) -> Json:
        it = served.operation
        found: dict[int, Json] = {}
        for answer in it.answers:
            found[answer.status] = self._answer(served, answer)
        told_of = problems(it, served.parts, self._checklist, sign_in=self._sign_in)
        for status, codes in told_of.items():
            told = self._problem(it, status, codes)
            if status in found:
                _merge(found[status], told)
            else:
                found[status] = self._shared(status, told)
        return {str(status): told for status, told in sorted(found.items())}

    def _shared(self, status: int, told: Json) -> Json:
        """The same answer under one name, whoever gives it."""
        for number in count(1):
            name = f"Problem{status}" + (f".{number}" if number > 1 else "")
            if self.responses.setdefault(name, told) == told:
                return {"$ref": f"#/components/responses/{name}"}
        raise AssertionError  # count() has no end

    def _answer(self, served: Served, answer: Answer) -> Json:
        told: Json = {"description": answer.says}
        if answer.headers or answer.maybe:
            told["headers"] = _headers(answer.headers, answer.maybe)
        content = {kind: {"schema": _shape(shape)} for kind, shape in answer.bodies.items()}
        if answer.events or answer.chunks:
            content[EVENTS] = {"schema": event_schema(answer.events, answer.chunks)}
        if content:
            told["content"] = content
        if links := {each.name: _link(each) for each in self._next(served, answer)}:
            told["links"] = links
        return told

    def _next(self, served: Served, answer: Answer) -> Iterator[Served]:
        """The operations that an answer leads to, as far as the app has them."""
        blueprint = served.endpoint.rpartition(".")[0]
        for name in answer.leads_to:
            endpoint = f"{blueprint}{name}" if name.startswith(".") else name
            yield from (
                each for each in self._everything
                if (each.endpoint, each.method) == (endpoint, "GET") and {*each.parts} <= {*_KNOWN}
            )

    def _problem(self, it: Operation, status: int, codes: list[str]) -> Json:
        faults = it.faults
        lines = [f"- `{faults.spelled(code)}`: {says(code, self._checklist)}" for code in codes]
        always = {503: ["Retry-After"], 504: ["Retry-After"], 401: ["WWW-Authenticate"]}
        required = always.get(status, [])
        others = ("Retry-After", *_OF_A_PROBLEM, *faults.maybe)
        maybe = [name for name in others if name not in required]
        told: Json = {"description": _phrase(status) + "\n\n" + "\n".join(lines)}
        told["headers"] = _headers(required, maybe)
        schema: Json = reference(faults.schema or Problem)
        schema["properties"] = dict(faults.known(status, codes))
        told["content"] = {faults.mimetype: {"schema": schema}}
        return told


def _link(to: Served) -> Json:
    return {"operationId": to.name, "parameters": {part: _KNOWN[part] for part in to.parts}}


def _merge(told: Json, more: Json) -> None:
    """A problem with the status of an answer: what only one of the two has may be missing."""
    told["description"] += "\n\n" + more["description"].partition("\n\n")[2]
    ours, theirs = told.get("headers", {}), more["headers"]
    told["headers"] = {**theirs, **ours}
    for name in ours.keys() ^ theirs.keys():
        told["headers"][name] = {**told["headers"][name], "required": False}
    content = told.setdefault("content", {})
    for kind, held in more["content"].items():
        either = [content[kind]["schema"], held["schema"]] if kind in content else []
        content[kind] = {"schema": {"anyOf": either}} if either else held


def _headers(always: Iterable[str], maybe: Iterable[str]) -> Json:
    """Headers by name. Required are those that are always there."""
    found: Json = {}
    for name, required in [*((n, True) for n in always), *((n, False) for n in maybe)]:
        header = words.HEADERS[name]
        known = {"description": header.says, "schema": dict(header.schema)}
        found[name] = {**known, "required": True} if required else known
    return found


def _parameter(it: Parameter) -> Json:
    told: Json = {"name": it.name, "in": it.place, "description": it.says}
    told["schema"] = dict(it.schema)
    if it.example is not None:
        told["example"] = it.example
    return told


def _shape(shape: Shape) -> Json:
    if isinstance(shape, tuple):
        return {"anyOf": [reference(model) for model in shape]}
    return reference(shape) if isinstance(shape, type) else dict(shape)


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase
