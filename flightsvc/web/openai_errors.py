"""Errors as clients of OpenAI's API know them: ``{"error": {message, type, param, code}}``.

Our codes are written in lower case there. ``x-should-retry`` says what the SDKs would otherwise
guess from the status, and ``Retry-After`` when.
"""

from __future__ import annotations

import json
from typing import Any

from flask import Response
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as WerkzeugResponse

from flightsvc.errors import FlightSvcError, ProviderRejected
from flightsvc.web.asking import asking
from flightsvc.web.extension import Extension
from flightsvc.web.problem import MIMETYPE, from_error, from_unexpected, retry_after
from flightsvc.web.routes import code_of, message_of, to_problem

#: What each status is called in ``type``; any other 4xx is the first, any other 5xx the last.
TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
}


def to_openai(error: Exception, service: Extension | None) -> WerkzeugResponse:
    """The answer to an error of any kind."""
    problem = to_problem(error, service)
    if problem.mimetype != MIMETYPE:  # a response that the host made itself
        return problem
    told = error_object(error, json.loads(problem.get_data()))
    asking().told = str(told["code"] or "").upper()
    response = Response(
        json.dumps({"error": told}), problem.status_code, content_type="application/json"
    )
    for name, value in problem.headers.items():
        if name not in ("Content-Type", "Content-Length"):
            response.headers[name] = value
    seconds = getattr(error, "retry_after_s", None)
    if seconds is not None and "Retry-After" not in response.headers:
        response.headers["Retry-After"] = str(retry_after(seconds))
    if not isinstance(error, HTTPException):
        response.headers["x-should-retry"] = "true" if told["retryable"] else "false"
    return response


def in_band(error: Exception, service: Extension, language: str) -> dict[str, Any]:
    """The error object of an event, where a status was sent already. Needs no request."""
    message = message_of(error, service, language)
    if isinstance(error, FlightSvcError):
        problem = from_error(error, code_of(error, service), message)
    else:
        problem = from_unexpected(error, message)
    return error_object(error, json.loads(problem.get_data()))


def error_object(error: Exception, problem: dict[str, Any]) -> dict[str, Any]:
    """One error as the object that SDKs read.

    :param problem: the same as a problem detail.
    """
    theirs = error.upstream_error if isinstance(error, ProviderRejected) else None
    told: dict[str, Any] = {
        "message": problem["detail"],
        "type": kind(problem["status"]),
        "param": getattr(error, "param", None),
        "code": problem["code"].lower(),
        "retryable": problem["retryable"],
    }
    if isinstance(error, FlightSvcError) and error.flight_id:
        told["flight_id"] = error.flight_id
    return told if theirs is None else {**told, **theirs}


def kind(status: int) -> str:
    """The ``type`` of an error."""
    return TYPES.get(status) or TYPES[400 if status < 500 else 500]
