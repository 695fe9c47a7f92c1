"""Answers as HTTP."""

from __future__ import annotations

import json
from typing import Any

from flask import Response

from flightsvc.flight.result import FlightResult
from flightsvc.flight.state import FlightView

JSON = "application/json"


#: Stands in an answer's JSON only as a field: inside of a text its quotes would be escaped.
SIMULATED = b'"simulated":true'


def render_result(result: FlightResult) -> Response:
    """A flight's answer: the stored bytes as they are, and in headers how it came about."""
    body = result.json_bytes
    headers = {
        "Flight-Id": result.flight_id,
        "Flight-Role": result.role,
        "Flight-Fence": str(result.fence),
    }
    if SIMULATED in body:
        headers["Flight-Simulated"] = "true"
    return Response(body, 200, headers, content_type=JSON)


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


def render_json(value: dict[str, Any]) -> Response:
    """A small object about the present moment."""
    return Response(json.dumps(value), 200, {"Cache-Control": "no-store"}, content_type=JSON)
