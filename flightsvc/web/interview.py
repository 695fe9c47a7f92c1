"""The interview's questions to a model: four stages, each at an address of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flask import Blueprint, Response, request
from pydantic import BaseModel

from flightsvc.errors import InvalidInput, NotFound
from flightsvc.flight.state import FlightState
from flightsvc.interview import demeanor, evaluation, extraction, follow_up
from flightsvc.interview.keeping import KINDS
from flightsvc.interview.stage import Stage
from flightsvc.web.addresses import FLIGHT_ID, SESSION_ID
from flightsvc.web.answering import answer, under_way
from flightsvc.web.asking import asking, asking_tenant
from flightsvc.web.body import check_fields, read_json
from flightsvc.web.extension import Extension
from flightsvc.web.openapi_interview import (
    FORGET,
    REPORT,
    SESSION,
    asking_operation,
    fetching_operation,
)
from flightsvc.web.render import render_kept, render_result
from flightsvc.web.routes import add_route
from flightsvc.web.sessions import delete_session, show_report, show_session
from flightsvc.web.uploads import read_upload


@dataclass(frozen=True, slots=True)
class Door:
    """How one stage is reached.

    :param read: its input, from the current request.
    """

    stage: Stage[Any]
    read: Callable[[Extension], Any]


def _json(schema: type[BaseModel]) -> Callable[[Extension], Any]:
    return lambda service: read_json(request, schema, service.settings)


def _resume(service: Extension) -> extraction.ExtractionInput:
    fields = tuple(extraction.ExtractionForm.model_fields)
    digest, form = _file(service, service.settings.max_file_bytes, fields)
    said = check_fields(form, extraction.ExtractionForm)
    return extraction.ExtractionInput(file_digest=digest, **said.model_dump())


def _picture(service: Extension) -> demeanor.DemeanorInput:
    digest, _ = _file(service, service.settings.max_image_bytes, ())
    return demeanor.DemeanorInput(file_digest=digest)


def _file(
    service: Extension, limit: int, fields: tuple[str, ...]
) -> tuple[str, Mapping[str, str]]:
    """The digest of the stored file, and what was said beside it."""
    upload = read_upload(request, service.settings, service.files, limit=limit, fields=fields)
    return upload.stored.digest, upload.form


#: by the last part of their address
DOORS: Mapping[str, Door] = {
    "evaluations": Door(evaluation, _json(evaluation.EvaluationInput)),
    "follow-ups": Door(follow_up, _json(follow_up.FollowUpInput)),
    "extractions": Door(extraction, _resume),
    "demeanor": Door(demeanor, _picture),
}


def interview_blueprint(name: str = "interview") -> Blueprint:
    """The interview's routes, below any prefix.

    :param name: of the blueprint; another one for a second mount in the same app.
    """
    blueprint = Blueprint(name, __name__)
    session = "/v1/interviews/<session_id>"
    for address, door in DOORS.items():
        rule, later = f"{session}/{address}", _later(address)
        asks = {"POST": asking_operation(door.stage, later)}
        add_route(blueprint, rule, address, _asking(door, address), "POST", operations=asks)
        fetches = {"GET": fetching_operation(door.stage)}
        rule = f"{rule}/<flight_id>"
        add_route(blueprint, rule, later, _fetching(door), "GET", operations=fetches)
    report, shows = f"{session}/report", {"GET": REPORT}
    add_route(blueprint, report, "report", _known(show_report), "GET", operations=shows)
    either = {"GET": SESSION, "DELETE": FORGET}
    add_route(blueprint, session, "session", _known(_show_or_delete), *either, operations=either)
    return blueprint


def _later(address: str) -> str:
    """The name of the route where an answer is fetched later."""
    return f"{address}-answer"


def _asking(door: Door, address: str) -> Callable[..., Response]:
    def ask(service: Extension, session_id: str) -> Response:
        tenant = asking_tenant(service)
        check_session_id(session_id)
        mine = asking()
        asked = door.read(service)
        question = service.invoker.question(door.stage, session_id, asked, tenant=tenant)
        return answer(service, question, mine, f".{_later(address)}")

    return ask


def _fetching(door: Door) -> Callable[..., Response]:
    """An answer that was asked for with ``Prefer: respond-async``."""

    def fetch(service: Extension, session_id: str, flight_id: str) -> Response:
        tenant = asking_tenant(service)
        check_session_id(session_id)
        if not FLIGHT_ID.fullmatch(flight_id):
            raise NotFound("There is no such flight.")
        row = service.records.find_flight(tenant, session_id, flight_id)
        if row is not None and row.kind == KINDS[door.stage.STAGE]:
            return render_kept(row)
        mine, endpoint = (tenant, door.stage.STAGE), request.endpoint or ""
        view = service.flights.inspect(flight_id)
        if view is not None and (view.tenant, view.stage) == mine:
            if view.failure is not None:
                return render_result(service.invoker.fetched(view, view.failure, session_id))
            if view.state is not FlightState.SUCCEEDED:
                return under_way(flight_id, session_id, endpoint, view.state)
        key = service.flights.in_the_air(flight_id)  # also where Redis has no part in it
        if key is not None and (key.tenant, key.stage) == mine:
            return under_way(flight_id, session_id, endpoint)
        raise NotFound("There is no such answer, or none any more: ask again.")

    return fetch


def _known(view: Callable[[Extension, str, str], Response]) -> Callable[..., Response]:
    """A view about one session of the tenant that asks."""

    def show(service: Extension, session_id: str) -> Response:
        tenant = asking_tenant(service)
        check_session_id(session_id)
        return view(service, tenant, session_id)

    return show


def _show_or_delete(service: Extension, tenant: str, session_id: str) -> Response:
    do = delete_session if request.method == "DELETE" else show_session
    return do(service, tenant, session_id)


def check_session_id(session_id: str) -> None:
    """:raises InvalidInput: it is too long, or has characters that do not belong there."""
    if not SESSION_ID.fullmatch(session_id):
        raise InvalidInput("session_id: use 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -")
