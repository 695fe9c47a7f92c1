"""`/v1/interviews/{session_id}`: what is kept of a session, its report, and its end."""

from __future__ import annotations

from flask import Response

from flightsvc.errors import NotFound
from flightsvc.records import (
    CONTENT_SECURITY_POLICY,
    SessionRecords,
    as_json,
    render_report,
)
from flightsvc.web.extension import Extension
from flightsvc.web.language import language
from flightsvc.web.render import render_json


def show_session(service: Extension, tenant: str, session_id: str) -> Response:
    """Everything that is kept of it."""
    return render_json(as_json(_session(service, tenant, session_id)))


def show_report(service: Extension, tenant: str, session_id: str) -> Response:
    """It as a page for people, on a screen and on paper."""
    page = render_report(_session(service, tenant, session_id), language())
    headers = {
        "Cache-Control": "no-store",
        "Content-Language": language(),
        "Vary": "Accept-Language",
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    }
    return Response(page, 200, headers, content_type="text/html; charset=utf-8")


def delete_session(service: Extension, tenant: str, session_id: str) -> Response:
    """Forget it: rows, files, stored answers, and what the workers remember of them."""
    service.forgetting.session(tenant, session_id)
    return Response(status=204)


def _session(service: Extension, tenant: str, session_id: str) -> SessionRecords:
    found = service.records.session(tenant, session_id)
    if not found:
        raise NotFound("There is no such session.")
    return found
