"""What all routes share: their methods, problem details, a counter, a line in the log."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from flask import Blueprint, Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.wrappers import Response as WerkzeugResponse

from flightsvc.checklist import Code
from flightsvc.errors import CallFailed, FlightSvcError, GuardError
from flightsvc.metrics import HTTP_ANSWERS
from flightsvc.web import problem
from flightsvc.web.asking import begin
from flightsvc.web.extension import Extension, extension
from flightsvc.web.language import language

View = Callable[..., WerkzeugResponse]
#: Makes the answer to an error of any kind.
Errors = Callable[[Exception, "Extension | None"], WerkzeugResponse]

ALL_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
#: In metrics, the name of all addresses that are no route.
NO_ROUTE = "none"


def add_route(
    blueprint: Blueprint,
    rule: str,
    name: str,
    view: View,
    *methods: str,
    counted: bool = True,
    errors: Errors | None = None,
) -> None:
    """Serve ``rule`` by ``view``, whatever the app around it does with its own errors.

    All methods come here, also those that are refused, and no error leaves: so the answer is a
    problem in every app, and the handlers of the app that mounts us see nothing of ours.

    :param name: of the route; in metrics and ``url_for``.
    :param view: gets the app's ``FlightSvc`` and the values in the address.
    :param methods: those that ``view`` is for (GET: HEAD too).
    :param counted: whether answers are counted by route and status, and logged; one that is
        streamed at its end.
    :param errors: makes the answers to errors; None: :func:`to_problem`.
    """
    allowed = (*methods, *(("HEAD",) if "GET" in methods else ()), "OPTIONS")

    def serve(**values: Any) -> WerkzeugResponse:
        service: Extension | None = None
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

    blueprint.add_url_rule(rule, name, serve, methods=ALL_METHODS, provide_automatic_options=False)


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
    """The answer to an error of any kind; what the checklist has a message for is told so."""
    if isinstance(error, FlightSvcError):
        return problem.from_error(error, code_of(error, service), language())
    if isinstance(error, HTTPException):
        return problem.from_http(error)
    return problem.from_unexpected(error)


def code_of(error: FlightSvcError, service: Extension | None) -> Code | None:
    """What the checklist says of an error; None where its own words say more."""
    of_a_call = isinstance(error, (CallFailed, GuardError))
    if service is None or not (of_a_call or str(error) == (error.__doc__ or "").split("\n")[0]):
        return None
    with suppress(FlightSvcError):  # this process has no objects: it cannot start, or it stops
        return service.checklist.codes.get(error.code)
    return None


def count(service: Extension | None, route: str, response: WerkzeugResponse) -> None:
    """Count one answer."""
    if service is not None:
        with suppress(FlightSvcError):  # no objects to count with; the answer itself says why
            service.metrics.count(HTTP_ANSWERS, route=route, status=str(response.status_code))


def _options(allowed: tuple[str, ...]) -> Response:
    return Response(status=204, headers={"Allow": ", ".join(allowed)})
