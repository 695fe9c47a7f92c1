"""Answers as HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from flask import Response

from flightsvc.flight.result import FlightResult
from flightsvc.flight.state import FlightView, Role
from flightsvc.interview.templates import text_for
from flightsvc.records import StoredRecord
from flightsvc.web.language import language
from flightsvc.web.openapi_terms import EVENTS, JSON

#: Stands in an answer's JSON only as a field: inside of a text its quotes would be escaped.
SIMULATED = b'"simulated":true'


def render_result(result: FlightResult) -> Response:
    """A flight's answer: the stored bytes as they are, and in headers how it came about."""
    spoken = language() if result.fallback is not None else ""
    body = body_of(result, spoken)
    headers = {
        "Flight-Id": result.flight_id,
        "Flight-Role": result.role,
        "Flight-Fence": str(result.fence),
    }
    if result.fallback is not None:
        headers |= {"Flight-Fallback": result.fallback, "Cache-Control": "no-store"}
        headers |= {"Content-Language": spoken, "Vary": "Accept-Language"}
    if SIMULATED in body:
        headers["Flight-Simulated"] = "true"
    return Response(body, 200, headers, content_type=JSON)


def body_of(result: FlightResult, language: str) -> bytes:
    """The answer as JSON: the stored bytes, or what stands in for them, told in one language."""
    return result.json_bytes if result.fallback is None else _stand_in(result, language)


def _stand_in(result: FlightResult, language: str) -> bytes:
    """What stands in for an answer, told in one language; whoever made it, it says what it is."""
    value = result.value
    if not isinstance(value, dict):
        return result.json_bytes
    said = value.get("message")
    if isinstance(said, dict) and {"en", "zh"} <= said.keys():
        value["message"] = text_for(said, language)
    value = {**value, "fallback": result.fallback, "warnings": value.get("warnings", [])}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def render_kept(row: StoredRecord) -> Response:
    """An answer from its row, as a replay of its flight would be."""
    headers = {
        "Flight-Id": row.flight_id,
        "Flight-Role": Role.REPLAY.value,
        "Flight-Fence": str(row.fence),
        "Cache-Control": "no-store",
    }
    if row.value.get("simulated"):
        headers["Flight-Simulated"] = "true"
    body = json.dumps(row.value, ensure_ascii=False, separators=(",", ":"))
    return Response(body.encode(), 200, headers, content_type=JSON)


def render_view(view: FlightView) -> Response:
    """A flight's state; who owns it and what it answered stay out."""
    return render_json(
        {
            "flight_id": view.flight_id,
            "stage": view.stage,
            "state": view.state,
            "fence": view.fence,
            "age_ms": view.age_ms,
            "heartbeat_age_ms": view.heartbeat_age_ms,
            "ownerships": view.ownerships,
            "followers": view.followers,
            "error_code": view.error_code,
            "retryable": view.retryable,
            "size": view.size,
        }
    )


def render_events(events: Iterable[bytes], headers: Mapping[str, str] | None = None) -> Response:
    """Server-sent events, none of which anybody on the way may hold back."""
    said = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", **(headers or {})}
    return Response(events, 200, said, content_type=EVENTS)


def event(name: str, data: Mapping[str, Any]) -> bytes:
    """One of them."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def render_json(value: dict[str, Any]) -> Response:
    """A small object about the present moment."""
    return Response(json.dumps(value), 200, {"Cache-Control": "no-store"}, content_type=JSON)
