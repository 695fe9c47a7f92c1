"""`GET /healthz`: this process lives. `GET /readyz`: send it requests, or not."""

from __future__ import annotations

import logging

from flask import Blueprint, Response

from flightsvc.errors import Draining, SettingsError
from flightsvc.web.extension import Extension
from flightsvc.web.openapi_shapes import Alive, Readiness
from flightsvc.web.openapi_terms import Answer, Operation, Told, json_of
from flightsvc.web.problem import problem
from flightsvc.web.render import render_json
from flightsvc.web.routes import add_route

log = logging.getLogger("flightsvc.web")

#: nothing can be served here: what to change stands in the answer and in the log
NOT_SET_UP = Told(503, SettingsError.default_code)

ALIVE = Operation(
    summary="Whether the process lives",
    says="It asks nothing else, Redis least of all.",
    answers=(Answer(200, "It does", json_of(Alive)),),
)
READY = Operation(
    summary="Whether requests are welcome",
    says="Not while the process stops, nor without a Redis that is required.",
    answers=(
        Answer(200, "They are", json_of(Readiness)),
        Answer(503, "Not now", json_of(Readiness), headers=("Retry-After",)),
    ),
    problems=(Draining, NOT_SET_UP),
)


def health_blueprint(name: str = "health") -> Blueprint:
    """Both probes, open to everybody and not counted.

    :param name: of the blueprint; another one for a second mount in the same app.
    """
    blueprint = Blueprint(name, __name__)
    alive, ready = {"GET": ALIVE}, {"GET": READY}
    add_route(blueprint, "/healthz", "healthz", healthz, "GET", counted=False, operations=alive)
    add_route(blueprint, "/readyz", "readyz", readyz, "GET", counted=False, operations=ready)
    return blueprint


def healthz(_service: Extension) -> Response:
    """The process answers. Nothing else is asked, Redis least of all."""
    return render_json({"status": "ok"})


def readyz(service: Extension) -> Response:
    """Whether requests are welcome: not while draining, nor without a Redis that is required."""
    try:
        redis = service.flights.coordination
    except SettingsError as error:  # under a server that starts no Redis, and none is named
        log.error("%s", error)
        return problem(503, error.code, str(error), retryable=error.retryable)
    missing = redis == "degraded" and service.settings.mode == "distributed"
    status = "draining" if service.draining else "not_ready" if missing else "ready"
    response = render_json({"status": status, "redis": redis})
    if status != "ready":
        response.status_code = 503
        response.headers["Retry-After"] = "1"
    return response
