"""What all blueprints share: one method a route, problem details, a counter."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from flask import Blueprint, Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, default_exceptions

from flightsvc.errors import FlightSvcError, SettingsError
from flightsvc.metrics import HTTP_ANSWERS
from flightsvc.web import problem
from flightsvc.web.extension import find_extension

View = Callable[..., Response]

ALL_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def new_blueprint(name: str, *, counted: bool = True) -> Blueprint:
    """A blueprint whose errors are problem details; the app's own handlers stay as they are.

    :param counted: whether answers are counted by route and status.
    """
    blueprint = Blueprint(name, __name__)
    handle_errors(blueprint)
    if counted:
        blueprint.after_request(count)
    return blueprint


def handle_errors(scope: Blueprint | Flask) -> None:
    """Answer every error inside a blueprint, or a whole app, by a problem."""
    scope.register_error_handler(FlightSvcError, _from_error)
    scope.register_error_handler(HTTPException, problem.from_http)
    # An app's handler of one status would win against a blueprint's handler of the class.
    for status in default_exceptions:
        scope.register_error_handler(status, problem.from_http)
    scope.register_error_handler(Exception, problem.from_unexpected)


def _from_error(error: FlightSvcError) -> Response:
    if isinstance(error, SettingsError):  # for whoever runs the service, not for who asks
        problem.log.error("%s", error)
        return problem.from_unexpected(error)
    return problem.from_error(error)


def add_route(blueprint: Blueprint, rule: str, name: str, view: View, method: str) -> None:
    """Serve ``rule`` by ``view`` for one method (GET: and HEAD).

    The rule takes all methods and refuses the others by itself: Flask's own refusal would come
    before the blueprint, in the words of the app that it is mounted in.

    :param name: of the route; in metrics and ``url_for``.
    """
    allowed = (method, "HEAD", "OPTIONS") if method == "GET" else (method, "OPTIONS")

    def only(**values: Any) -> Response:
        if request.method not in allowed:
            raise MethodNotAllowed(allowed)
        if request.method == "OPTIONS":
            return Response(status=204, headers={"Allow": ", ".join(allowed)})
        return view(**values)

    blueprint.add_url_rule(rule, name, only, methods=ALL_METHODS, provide_automatic_options=False)


def count(response: Response) -> Response:
    """Count one answer under its route; what fits no route shares one name."""
    rule = request.url_rule
    route = rule.endpoint.rpartition(".")[2] if rule is not None else "none"
    service = find_extension()
    if service is None:
        return response
    with suppress(FlightSvcError):  # no objects to count with; the answer itself says why
        service.metrics.count(HTTP_ANSWERS, route=route, status=str(response.status_code))
    return response


def count_unrouted(response: Response) -> Response:
    """Count an answer that no blueprint counts."""
    return response if request.url_rule is not None else count(response)
