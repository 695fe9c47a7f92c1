"""The same backend, where equal clicks are one call, and with the interview of flightsvc."""

from __future__ import annotations

import os

from flask import Blueprint, Flask, abort, current_app, request
from flask.typing import ResponseReturnValue

from examples.legacy_backend import model, tables
from examples.legacy_backend.accounts import accounts, signed_in, user
from flightsvc import FlightKey, FlightSvc
from flightsvc.errors import FlightSvcError
from flightsvc.flight import hash_text, normalise_answer
from flightsvc.web import flights_blueprint, interview_blueprint

flightsvc = FlightSvc(tenant_of=lambda _request: user())
hr = Blueprint("hr", __name__)


@hr.post("/gradings/<int:number>")
@signed_in
def grade(number: int) -> ResponseReturnValue:
    question = tables.question(number) or abort(404)
    url, answer, asking = current_app.config["HR_MODEL_URL"], request.form["answer"], user() or ""
    said, variant = normalise_answer(answer), hash_text(question, model.PROMPT)
    key = FlightKey("grading", number, said, tenant=asking, variant=variant)
    grading = flightsvc.flights.run(key, lambda _ctx: model.grade(url, question, answer)).value
    tables.keep(asking, number, grading)
    return {"grading": grading}


@hr.get("/gradings")
@signed_in
def gradings() -> ResponseReturnValue:
    return {"gradings": tables.gradings(user() or "")}


def model_down(_error: Exception) -> ResponseReturnValue:
    return "<h1>The grader is out</h1>Please try again.", 502


def create_app() -> Flask:
    app = Flask(__name__)
    app.secret_key = os.environ.get("HR_SECRET", "for trying it out")
    app.config["SESSION_COOKIE_SAMESITE"] = "Lax"
    app.config["HR_DATABASE"] = os.environ.get("HR_DATABASE", "hr.sqlite")
    app.config["HR_MODEL_URL"] = os.environ.get("HR_MODEL_URL", "http://127.0.0.1:9000/v1")
    tables.init_app(app)
    app.register_blueprint(accounts, url_prefix="/hr")
    app.register_blueprint(hr, url_prefix="/hr")
    app.register_error_handler(404, lambda _error: ("<h1>HR has no such page</h1>", 404))
    app.register_error_handler(FlightSvcError, model_down)
    app.config["FLIGHTSVC_CUSTOM_STAGES"] = ["grading"]
    app.config["FLIGHTSVC_STAGES"] = {"grading": {"budget_ms": 70_000}}  # what model.grade() takes
    flightsvc.init_app(app)
    app.register_blueprint(interview_blueprint(), url_prefix="/hr/ai")
    app.register_blueprint(flights_blueprint(), url_prefix="/hr/ai")
    return app
