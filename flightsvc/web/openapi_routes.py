"""`GET /openapi.json`: what there is, for programs. `GET /docs`: the same for people."""

from __future__ import annotations

import json

from flask import Blueprint, Response, current_app, request

from flightsvc.checklist import Checklist, load_checklist
from flightsvc.errors import FlightSvcError
from flightsvc.web.extension import Extension
from flightsvc.web.openapi import document
from flightsvc.web.openapi_page import CONTENT_SECURITY_POLICY, render_page
from flightsvc.web.openapi_schemas import Json
from flightsvc.web.openapi_terms import HTML, JSON, Answer, Operation
from flightsvc.web.routes import add_route

DOCUMENT = Operation(
    summary="This document",
    says="All routes of flightsvc that this app serves, with the addresses that they have here.",
    answers=(Answer(200, "OpenAPI 3.1", {JSON: {"type": "object"}}),),
)
PAGE = Operation(
    summary="This document as a page",
    answers=(
        Answer(200, "A page that loads nothing", {HTML: {"type": "string"}},
               headers=("Content-Security-Policy",)),
    ),
)  # fmt: skip


def openapi_blueprint(name: str = "openapi") -> Blueprint:
    """Both routes, open to everybody; they tell of all other routes of ours in the same app.

    :param name: of the blueprint; another one for a second mount in the same app.
    """
    blueprint = Blueprint(name, __name__)
    add_route(
        blueprint, "/openapi.json", "document", _document, "GET", operations={"GET": DOCUMENT}
    )
    add_route(blueprint, "/docs", "docs", _page, "GET", operations={"GET": PAGE})
    return blueprint


def _document(service: Extension) -> Response:
    text = json.dumps(_made(service), ensure_ascii=False)
    return Response(text, 200, {"Cache-Control": "no-cache"}, content_type=JSON)


def _page(service: Extension) -> Response:
    headers = {
        "Cache-Control": "no-cache",
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "X-Content-Type-Options": "nosniff",
    }
    page = render_page(_made(service))
    return Response(page, 200, headers, content_type=f"{HTML}; charset=utf-8")


def _made(service: Extension) -> Json:
    """The document of the app that serves this request."""
    return document(
        current_app._get_current_object(),  # type: ignore[attr-defined]
        _checklist(service),
        base=request.script_root,
        sign_in=service.authenticator.asks,
    )


def _checklist(service: Extension) -> Checklist:
    """The one in force, also in a process that cannot serve anything else."""
    try:
        return service.checklist
    except FlightSvcError:
        return load_checklist(service.settings)
