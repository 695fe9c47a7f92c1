"""What all routes share: their methods, problem details, a counter, a line in the log."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from flask import Blueprint, Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.wrappers import Response as WerkzeugResponse

from flightsvc.checklist import UNKNOWN, Checklist, Code
from flightsvc.errors import CallFailed, FlightSvcError, GuardError, RequestError, SettingsError
from flightsvc.metrics import HTTP_ANSWERS
from flightsvc.web import problem
from flightsvc.web.asking import begin
from flightsvc.web.extension import Extension, extension
from flightsvc.web.language import language
from flightsvc.web.openapi_terms import Operation

View = Callable[..., WerkzeugResponse]
#: Makes the answer to an error of any kind.
Errors = Callable[[Exception, "Extension | None"], WerkzeugResponse]

ALL_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
_VALUE = re.compile(r"<(\w+)>")
#: In metrics, the name of all addresses that are no route.
NO_ROUTE = "none"

_OPERATIONS = "flightsvc_operations"
_UNSAID: Mapping[str, Operation] = MappingProxyType({})


def add_route(
    blueprint: Blueprint,
    rule: str,
    name: str,
    view: View,
    *methods: str,
    counted: bool = True,
    errors: Errors | None = None,
    operations: Mapping[str, Operation] = _UNSAID,
) -> None:
    """Serve ``rule`` by ``view``, whatever the app around it does with its own errors.

    All methods come here, also those that are refused, and no error leaves: so the answer is a
    problem in every app, and the handlers of the app that mounts us see nothing of ours.

    :param name: of the route; in metrics and ``url_for``.
    :param view: gets the app's ``FlightSvc`` and the values in ``rule``; those in the prefix are
        the app's own.
    :param methods: those that ``view`` is for (GET: HEAD too).
    :param counted: whether answers are counted by route and status, and logged; one that is
        streamed at its end.
    :param errors: makes the answers to errors; None: :func:`to_problem`.
    :param operations: what each of the methods says of itself in ``/openapi.json``.
    """
    allowed = (*methods, *(("HEAD",) if "GET" in methods else ()), "OPTIONS")
    ours = frozenset(_VALUE.findall(rule))

    def serve(**given: Any) -> WerkzeugResponse:
        service: Extension | None = None
        values = {name: value for name, value in given.items() if name in ours}
        asking = begin(values)
        try:
            service = extension()
            asked: str = request.environ["REQUEST_METHOD"]
            if asked not in allowed:
                raise MethodNotAllowed(allowed)
            response = _options(allowed) if asked == "OPTIONS" else view(service, **values)
        except Exception as error:  # the outermost place that is ours
            asking.failed(error)
            response = (errors or to_problem)(error, service)
        if counted:
            count(service, name, response)
            asking.answered(name, response)
        return response

    setattr(serve, _OPERATIONS, operations)
    blueprint.add_url_rule(
        rule,
        name,
        serve,
        methods=ALL_METHODS,
        provide_automatic_options=False,
        merge_slashes=False,  # a redirect would be no answer that a client looks for
    )


def operations_of(view: object) -> Mapping[str, Operation]:
    """What a view of an app says of itself, by method; nothing if it is none of ours."""
    found: Mapping[str, Operation] = getattr(view, _OPERATIONS, _UNSAID)
    return found


def handle_errors(app: Flask) -> None:
    """Answer what fits no route of ours by a problem too, in an app that is ours."""

    def handle(error: Exception) -> WerkzeugResponse:
        asking = begin({})
        asking.failed(error)
        response = to_problem(error, extension())
        count(extension(), NO_ROUTE, response)
        asking.answered(NO_ROUTE, response)
        return response

    app.register_error_handler(Exception, handle)


def to_problem(error: Exception, service: Extension | None) -> WerkzeugResponse:
    """The answer to an error of any kind, with the checklist's word to the user."""
    message = message_of(error, service, language())
    if isinstance(error, FlightSvcError):
        return problem.from_error(error, code_of(error, service), message)
    if isinstance(error, HTTPException):
        return problem.from_http(error, message)
    return problem.from_unexpected(error, message)


def message_of(
    error: Exception, service: Extension | None, spoken: str
) -> problem.Message | None:
    """What a user is told; a failure that has no words for users is told as an unknown one.

    :param spoken: in which language; needs no request.
    """
    with suppress(FlightSvcError):  # this process has no objects: it cannot start, or it stops
        if service is not None:
            checklist = service.checklist
            for code in (_listed(_kind(error), checklist), checklist.code(UNKNOWN)):
                if code.message(spoken):
                    return problem.Message(code.message(spoken), spoken)
    return None


def _kind(error: Exception) -> Exception:
    """The error that the checklist knows it as."""
    if isinstance(error, FlightSvcError) and not isinstance(error, SettingsError):
        return error
    status = error.code if isinstance(error, HTTPException) else None
    return RequestError() if status is not None and status < 500 else Exception()


def code_of(error: FlightSvcError, service: Extension | None) -> Code | None:
    """What the checklist says of an error; None where its own words say more."""
    of_a_call = isinstance(error, (CallFailed, GuardError))
    if service is None or not (of_a_call or str(error) == (error.__doc__ or "").split("\n")[0]):
        return None
    with suppress(FlightSvcError):
        checklist = service.checklist
        return _listed(error, checklist) if of_a_call else checklist.codes.get(error.code)
    return None


def _listed(error: Exception, checklist: Checklist) -> Code:
    """The code of an error as everybody was told it, which says more than what is behind it."""
    named = checklist.codes.get(error.code) if isinstance(error, FlightSvcError) else None
    return named or checklist.classify(error)


def count(service: Extension | None, route: str, response: WerkzeugResponse) -> None:
    """Count one answer."""
    if service is not None:
        with suppress(FlightSvcError):  # no objects to count with; the answer itself says why
            service.metrics.count(HTTP_ANSWERS, route=route, status=str(response.status_code))


def _options(allowed: tuple[str, ...]) -> Response:
    return Response(status=204, headers={"Allow": ", ".join(allowed)})
