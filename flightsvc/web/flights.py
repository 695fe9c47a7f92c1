"""`GET /v1/flights/{id}`: how a flight stands, to its own tenant."""

from __future__ import annotations

import re

from flask import Blueprint, Response

from flightsvc.errors import NotFound
from flightsvc.web.asking import asking_tenant
from flightsvc.web.extension import Extension
from flightsvc.web.render import render_view
from flightsvc.web.routes import add_route

_FLIGHT_ID = re.compile(r"[0-9a-f]{32}")


def flights_blueprint(name: str = "flights") -> Blueprint:
    """The flights' routes, below any prefix.

    :param name: of the blueprint; another one for a second mount in the same app.
    """
    blueprint = Blueprint(name, __name__)
    add_route(blueprint, "/v1/flights/<flight_id>", "flight", show_flight, "GET")
    return blueprint


def show_flight(service: Extension, flight_id: str) -> Response:
    """State, age and how many other workers wait. Another tenant's flight is not there at all."""
    tenant = asking_tenant(service)
    if _FLIGHT_ID.fullmatch(flight_id):
        view = service.flights.inspect(flight_id)
        if view is not None and view.tenant == tenant:
            return render_view(view)
    raise NotFound("There is no such flight.")
