"""`POST /v1/interviews/{session_id}/evaluations`."""

from __future__ import annotations

import re

from flask import Blueprint, Response, request

from flightsvc.errors import InvalidInput
from flightsvc.interview.evaluation import EvaluationInput
from flightsvc.web.asking import asking, asking_tenant
from flightsvc.web.body import read_json
from flightsvc.web.extension import Extension
from flightsvc.web.language import language
from flightsvc.web.render import render_result
from flightsvc.web.routes import add_route

_SESSION_ID = re.compile(r"[A-Za-z0-9._~:@-]{1,128}")


def interview_blueprint(name: str = "interview") -> Blueprint:
    """The interview's routes, below any prefix.

    :param name: of the blueprint; another one for a second mount in the same app.
    """
    blueprint = Blueprint(name, __name__)
    add_route(blueprint, "/v1/interviews/<session_id>/evaluations", "evaluations", evaluate, "POST")
    return blueprint


def evaluate(service: Extension, session_id: str) -> Response:
    """Judge one answer of a candidate."""
    tenant = asking_tenant(service)
    check_session_id(session_id)
    asked = read_json(request, EvaluationInput, service.settings)
    mine = asking()
    result = service.invoker.evaluate(
        session_id, asked, tenant=tenant, trace=mine.trace, facts=mine.facts
    )
    return render_result(result, language())


def check_session_id(session_id: str) -> None:
    """:raises InvalidInput: it is too long, or has characters that do not belong there."""
    if not _SESSION_ID.fullmatch(session_id):
        raise InvalidInput("session_id: use 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -")
