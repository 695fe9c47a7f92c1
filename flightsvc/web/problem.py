"""Errors as problem details (RFC 9457): `application/problem+json`, one shape for all.

``{"type", "title", "status", "detail", "code", "retryable", "message"}`` and, where a flight stood
behind it, ``"flight_id"``. ``detail`` is for whoever programs the client; ``message`` is the
checklist's word to its user, in English or Chinese. What is our fault and passes by itself (503,
504) always says after how many seconds to come back. What nobody foresaw is logged, and its
details stay here.
"""

from __future__ import annotations

import json
import logging
import math
import re
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

from flask import Response, request
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as WerkzeugResponse

from flightsvc.checklist import Code
from flightsvc.checklist.classify import failure_behind
from flightsvc.errors import FlightSvcError, SettingsError, Unauthenticated, UnreadableFile

log = logging.getLogger("flightsvc.web")

MIMETYPE = "application/problem+json"
#: Actions that no answer comes of, but that a client should know.
TOLD = ("refuse", "manual_review")
#: Bounds of Retry-After, in seconds.
RETRY_SOONEST, RETRY_LATEST = 1, 86_400
#: The frameworks' errors have no code; these have a better one than the status's name.
HTTP_CODES = {400: "REQUEST_INVALID", 413: "PAYLOAD_TOO_LARGE"}


class Message(NamedTuple):
    """What a user is told.

    :param language: ``en`` or ``zh``.
    """

    text: str
    language: str


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    retryable: bool,
    retry_after_s: float | None = None,
    flight_id: str = "",
    fence: int = 0,
    fallback: str = "",
    message: Message | None = None,
) -> Response:
    """One problem as a response.

    :param code: ``UPPER_SNAKE``; names the kind of problem.
    :param detail: one sentence for the caller, safe to show.
    :param retry_after_s: seconds after which asking again makes sense; sent rounded up.
    :param fallback: what is done instead of an answer.
    :param flight_id: the flight that failed, if one did; ``fence`` its ownership.
    """
    members: dict[str, object] = {
        "type": "urn:problem-type:flightsvc:" + code.lower().replace("_", "-"),
        "title": title(code),
        "status": status,
        "detail": detail,
        "code": code,
        "retryable": retryable,
    }
    headers = {"Cache-Control": "no-store"}
    if flight_id:
        members["flight_id"] = headers["Flight-Id"] = flight_id
    if message is not None:
        members["message"], headers["Content-Language"] = message
        headers["Vary"] = "Accept-Language"
    if fallback:
        members["fallback"] = headers["Flight-Fallback"] = fallback
    if fence:
        headers["Flight-Fence"] = str(fence)
    if retry_after_s is not None or status in (503, 504):
        headers["Retry-After"] = str(retry_after(retry_after_s))
    return Response(json.dumps(members), status, headers, content_type=MIMETYPE)


def from_error(
    error: FlightSvcError, code: Code | None = None, message: Message | None = None
) -> Response:
    """Any error of the tree, as its class says.

    :param code: what the checklist says of it, where its own words say no more: then ``detail`` is
        the message too (of a file that cannot be read: why, where this worker knows), and the
        code's action is told if it is one that no answer comes of.
    """
    if isinstance(error, SettingsError):  # for whoever runs the service, not for who asks
        log.error("%s", error)
        return from_unexpected(error, message)
    response = problem(
        error.status,
        error.code,
        _own_words(error) or (message.text if code and message else str(error)),
        retryable=error.retryable,
        retry_after_s=error.retry_after_s,
        flight_id=getattr(error, "flight_id", ""),
        fence=getattr(error, "fence", 0),
        fallback=code.fallback.action if code and code.fallback.action in TOLD else "",
        message=message,
    )
    if isinstance(error, Unauthenticated):
        response.headers["WWW-Authenticate"] = 'Bearer realm="flightsvc"'
    return response


def _own_words(error: FlightSvcError) -> str:
    """Why a file cannot be read; empty for other errors, and where another worker knows it."""
    behind = failure_behind(error)
    is_known = error.code == UnreadableFile.default_code and isinstance(behind, FlightSvcError)
    return str(behind) if is_known and behind is not error else ""


def from_http(error: HTTPException, message: Message | None = None) -> WerkzeugResponse:
    """An error of Flask or Werkzeug; one that brings its own response keeps it."""
    status = error.code
    if error.response is not None or status is None or status < 400:
        return error.get_response(request.environ)
    detail = error.description or "" if status < 500 else ""
    code = HTTP_CODES.get(status) or re.sub(r"\W+", "_", phrase(status).upper())
    detail = detail or phrase(status)
    response = problem(status, code, detail, retryable=status >= 500, message=message)
    for name, value in error.get_headers():
        if name.lower() not in ("content-type", "content-length"):
            response.headers.setdefault(name, value)
    return response


def from_unexpected(_error: Exception, message: Message | None = None) -> Response:
    """An error that nobody foresaw; whoever serves the request logs it."""
    detail = "Something went wrong on our side; it was logged."
    return problem(500, "UNEXPECTED", detail, retryable=True, message=message)


def retry_after(seconds: float | None) -> int:
    """Whole seconds, at least 1 and at most a day."""
    if seconds is None or not math.isfinite(seconds):
        return RETRY_SOONEST
    return min(max(math.ceil(seconds), RETRY_SOONEST), RETRY_LATEST)


@lru_cache(maxsize=256)
def title(code: str) -> str:
    """The kind of problem in words; the same for every occurrence, as RFC 9457 asks."""
    return code.replace("_", " ").capitalize()


def phrase(status: int) -> str:
    """The reason phrase of a status."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
