"""`GET /healthz`: this process lives. `GET /readyz`: send it requests, or not."""

from __future__ import annotations

from flask import Blueprint, Response

from flightsvc.web.extension import Extension
from flightsvc.web.render import render_json
from flightsvc.web.routes import add_route


def health_blueprint(name: str = "health") -> Blueprint:
    """Both probes, open to everybody and not counted.

    :param name: of the blueprint; another one for a second mount in the same app.
    """
    blueprint = Blueprint(name, __name__)
    add_route(blueprint, "/healthz", "healthz", healthz, "GET", counted=False)
    add_route(blueprint, "/readyz", "readyz", readyz, "GET", counted=False)
    return blueprint


def healthz(_service: Extension) -> Response:
    """The process answers. Nothing else is asked, Redis least of all."""
    return render_json({"status": "ok"})


def readyz(service: Extension) -> Response:
    """Whether requests are welcome: not while draining, nor without a Redis that is required."""
    redis = service.flights.coordination
    missing = redis == "degraded" and service.settings.mode == "distributed"
    status = "draining" if service.draining else "not_ready" if missing else "ready"
    response = render_json({"status": status, "redis": redis})
    if status != "ready":
        response.status_code = 503
        response.headers["Retry-After"] = "1"
    return response
