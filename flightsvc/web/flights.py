"""`GET /v1/flights/{id}`: how a flight stands, to its own tenant."""

from __future__ import annotations

from flask import Blueprint, Response, request

from flightsvc.errors import CoordinationUnavailable, NotFound, RecordsError
from flightsvc.web.addresses import FLIGHT_ID
from flightsvc.web.asking import asking_tenant
from flightsvc.web.extension import Extension
from flightsvc.web.openapi_shapes import FlightShown
from flightsvc.web.openapi_terms import TENANT, Answer, Operation, json_of
from flightsvc.web.render import render_view
from flightsvc.web.routes import add_route

SHOW = Operation(
    summary="How a flight stands",
    says="Another tenant's flight is not there at all.",
    tag="Flights",
    who=TENANT,
    answers=(Answer(200, "Its state", json_of(FlightShown)),),
    problems=(CoordinationUnavailable,),
)
FORGET = Operation(
    summary="Forget what a flight came to",
    says="Its answer or its failure, its row, and its file if nothing else is about that.",
    tag="Flights",
    who=TENANT,
    answers=(Answer(204, "It is forgotten"),),
    problems=(CoordinationUnavailable, RecordsError),
)


def flights_blueprint(name: str = "flights") -> Blueprint:
    """The flights' routes, below any prefix.

    :param name: of the blueprint; another one for a second mount in the same app.
    """
    blueprint = Blueprint(name, __name__)
    either = {"GET": SHOW, "DELETE": FORGET}
    add_route(
        blueprint, "/v1/flights/<flight_id>", "flight", _flight, *either, operations=either
    )
    return blueprint


def _flight(service: Extension, flight_id: str) -> Response:
    return (delete_flight if request.method == "DELETE" else show_flight)(service, flight_id)


def show_flight(service: Extension, flight_id: str) -> Response:
    """State, age and how many other workers wait. Another tenant's flight is not there at all."""
    tenant = asking_tenant(service)
    if FLIGHT_ID.fullmatch(flight_id):
        view = service.flights.inspect(flight_id)
        if view is not None and view.tenant == tenant:
            return render_view(view)
    raise NotFound("There is no such flight.")


def delete_flight(service: Extension, flight_id: str) -> Response:
    """Forget its answer or its failure, its row, and its file if no other row is about that."""
    tenant = asking_tenant(service)
    if FLIGHT_ID.fullmatch(flight_id):
        view = service.flights.inspect(flight_id)
        mine = view is not None and view.tenant == tenant
        if view is None or mine:
            kept = service.forgetting.flight(tenant, flight_id)
            if kept or mine:
                return Response(status=204)
    raise NotFound("There is no such flight.")
