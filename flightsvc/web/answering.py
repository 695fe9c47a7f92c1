"""The answer to a question, in the form in which its caller wants it.

At once, which is the usual form; step by step as server-sent events (``?progress=1``); or later, at
an address of its own (``Prefer: respond-async``, RFC 7240).
"""

from __future__ import annotations

import json
import re
from typing import Any

import gevent
from flask import Response, request, url_for

from flightsvc.errors import FlightSvcError
from flightsvc.flight.result import FlightResult
from flightsvc.flight.state import FlightState
from flightsvc.interview.asked import AskedQuestion
from flightsvc.web.asking import Asking
from flightsvc.web.extension import Extension
from flightsvc.web.openapi_terms import JSON
from flightsvc.web.progress import ProgressStream
from flightsvc.web.render import render_result

#: time in s in which an answer that is there already comes even to whoever would ask later
AT_ONCE_S = 0.1
#: longest time in s that ``Prefer: wait=…`` can make it
LONGEST_AT_ONCE_S = 60.0
#: time in s after which to look again
LOOK_AGAIN_S = 1

_WAIT = re.compile(r"wait\s*=\s*(\d{1,4})$")


def answer(
    service: Extension, question: AskedQuestion[Any], mine: Asking, endpoint: str
) -> Response:
    """Ask, and answer in the form that the current request asks for.

    :param endpoint: of the blueprint's route at which an answer is fetched later.
    """
    environ = request.environ
    if environ["QUERY_STRING"] and request.args.get("progress", "") not in ("", "0"):
        return ProgressStream(service, question, mine).response()
    wait_s = _respond_async() if "HTTP_PREFER" in environ else None
    if wait_s is None:
        return render_result(question.answer(mine.trace, mine.facts))
    return _later(question, mine, endpoint, wait_s)


def _respond_async() -> float | None:
    """None: the caller waits. Else how long, in s, before it is told where to look."""
    wanted = [each.strip().lower() for each in request.headers.get("Prefer", "").split(",")]
    wanted = [part.strip() for each in wanted for part in each.split(";")]
    if "respond-async" not in wanted:
        return None
    waits = [int(found[1]) for each in wanted if (found := _WAIT.match(each))]
    return min(float(waits[0]), LONGEST_AT_ONCE_S) if waits else AT_ONCE_S


def _later(question: AskedQuestion[Any], mine: Asking, endpoint: str, wait_s: float) -> Response:
    def ask() -> FlightResult | FlightSvcError:
        try:
            return question.answer(mine.trace, mine.facts)
        except FlightSvcError as error:  # whoever looks later finds it in the flight
            return error

    asking = gevent.spawn(ask)
    asking.join(timeout=wait_s)
    if not asking.dead:
        return under_way(question.key.flight_id, question.session_id, endpoint)
    found = asking.get()
    if isinstance(found, FlightSvcError):
        raise found
    return render_result(found)


def under_way(
    flight_id: str, session_id: str, endpoint: str, state: FlightState = FlightState.PENDING
) -> Response:
    """The flight goes on: where to look for its answer."""
    here = request.view_args or {}  # what stands in the prefix, too
    location = url_for(endpoint, **{**here, "session_id": session_id, "flight_id": flight_id})
    headers = {
        "Location": location,
        "Retry-After": str(LOOK_AGAIN_S),
        "Cache-Control": "no-store",
        "Flight-Id": flight_id,
    }
    if request.method == "POST":
        headers["Preference-Applied"] = "respond-async"
    body = {"flight_id": flight_id, "state": state, "location": location}
    return Response(json.dumps(body), 202, headers, content_type=JSON)
