"""Which problems a route can answer with, by status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flightsvc import errors
from flightsvc.checklist import UNKNOWN, Checklist, Code
from flightsvc.errors import (
    BodyTooSlow,
    CoordinationUnavailable,
    Draining,
    FilesUnavailable,
    FlightSvcError,
    InvalidInput,
    ModulePaused,
    NotFound,
    Overloaded,
    PayloadTooLarge,
    RequestError,
    SessionForgotten,
    TooManyWaiters,
    Unauthenticated,
    WaitTimeout,
)
from flightsvc.web.openapi_terms import OPERATOR, Asks, Form, JsonBody, Operation, SignIn, Told

UNEXPECTED = Told(500, "UNEXPECTED")
FORBIDDEN = Told(403, "FORBIDDEN")
UNSUPPORTED = Told(415, "UNSUPPORTED_MEDIA_TYPE")
#: what the reading of a JSON body says (:mod:`flightsvc.web.body`)
NOT_JSON = (Told(400, "JSON_INVALID"), Told(400, "JSON_DUPLICATE_NAME"))

#: raised as they are, where no call was made or its end is not known
OF_A_WAIT: tuple[type[FlightSvcError], ...] = (
    WaitTimeout, TooManyWaiters, Draining, CoordinationUnavailable, ModulePaused, Overloaded,
    SessionForgotten,
)  # fmt: skip
#: codes that calls fail with by name, so that no rule of the checklist leads to them
BY_NAME = (
    "AI_INPUT_EMPTY", "AI_ANSWER_TRUNCATED", "AI_CONTENT_FILTERED", "RETRY_EXHAUSTED",
    "RESULT_NOT_STORED", "FLIGHT_OWNERS_LOST", UNKNOWN,
)  # fmt: skip
#: what the flight itself finds wrong with an answer; the checklist has it as RESULT_REJECTED
TOO_LARGE = Told(500, "RESULT_TOO_LARGE")
#: of those, what only an interview's question can come to
OF_INTERVIEWS = frozenset(["SESSION_FORGOTTEN", "AI_INPUT_EMPTY"])
#: actions that always put something in the answer's place
STANDS_IN = ("template", "clarify", "ask_input")
#: codes that mean no call of a model: a route that can have one says so
OF_NO_CALL = frozenset(
    ["RESULT_REJECTED", "FLIGHT_NESTED", "SESSION_BUSY", "RECORDS_UNAVAILABLE", "FILES_UNAVAILABLE"]
    + [
        kind.default_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, RequestError)
    ]
)


def problems(
    operation: Operation, path: Iterable[str], checklist: Checklist, *, sign_in: SignIn
) -> dict[int, list[str]]:
    """Status → codes, both in order.

    :param path: names of the variable parts of its address.
    :param sign_in: how tenants do.
    """
    told = {
        each if isinstance(each, Told) else Told.of(each) for each in operation.problems
    } | {UNEXPECTED}
    told.update(_of_who(operation, sign_in))
    told.update(_of_body(operation))
    if path := tuple(path):
        told.add(Told.of(NotFound))
    if "session_id" in path:
        told.add(Told.of(InvalidInput))
    if operation.asks:
        told.update(_of_call(checklist, operation.asks))
    by_status: dict[int, list[str]] = {}
    for status, code in sorted(told):
        by_status.setdefault(status, []).append(code)
    return by_status


def _of_who(operation: Operation, sign_in: SignIn) -> Iterator[Told]:
    if operation.who == "anybody":
        return
    yield Told.of(Draining)
    if sign_in or operation.who == OPERATOR:
        yield Told.of(Unauthenticated)
    if sign_in == "tokens" or operation.who == OPERATOR:
        yield FORBIDDEN


def _of_body(operation: Operation) -> Iterator[Told]:
    if operation.body is None:
        return
    yield from map(Told.of, (RequestError, BodyTooSlow, PayloadTooLarge))
    yield UNSUPPORTED
    if isinstance(operation.body, JsonBody):
        yield Told.of(operation.body.wrong)
        yield from NOT_JSON
    else:
        yield Told.of(InvalidInput)
    if isinstance(operation.body, Form):
        yield Told.of(FilesUnavailable)


def _of_call(checklist: Checklist, asks: Asks) -> Iterator[Told]:
    """What a call of the model can fail with."""
    names = {rule.to for rule in checklist.classifier.rules} | set(BY_NAME)
    told = {Told(code.status, code.name) for code in map(checklist.code, names - OF_NO_CALL)
            if asks != "model" or code.fallback.action not in STANDS_IN}  # fmt: skip
    if asks != "service":
        told |= {TOO_LARGE, *map(Told.of, OF_A_WAIT)}
    yield from (each for each in told if asks == "model" or each.code not in OF_INTERVIEWS)


def says(code: str, checklist: Checklist) -> str:
    """What a code means, in a few words."""
    known: Code | None = checklist.codes.get(code)
    if known is not None:
        return known.about_en
    return _SAYS.get(code) or _CLASSES[code]


#: the first line of each class's text
_CLASSES = {
    kind.default_code: (kind.__doc__ or "").split("\n")[0].rstrip(".")
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, FlightSvcError)
}
_SAYS = {
    "UNEXPECTED": "What nobody foresaw; it is logged",
    "FORBIDDEN": "The token does not open this address",
    "UNSUPPORTED_MEDIA_TYPE": "The body is not of the named type in UTF-8, or it is compressed",
    "JSON_INVALID": "The body is not JSON in UTF-8",
    "JSON_DUPLICATE_NAME": "An object in the body has one name twice",
    "REQUEST_INVALID": "The request cannot be read",
    "MODEL_NOT_FOUND": "The model is none of FLIGHTSVC_GATEWAY_MODELS",
    "RESULT_TOO_LARGE": "The answer is larger than FLIGHTSVC_MAX_RESULT_BYTES",
}
