"""An interview backend that calls its model directly: each click is a call."""

from __future__ import annotations

import os

from flask import Blueprint, Flask, abort, current_app, request
from flask.typing import ResponseReturnValue

from examples.legacy_backend import model, tables
from examples.legacy_backend.accounts import accounts, signed_in, user

hr = Blueprint("hr", __name__)


@hr.post("/gradings/<int:number>")
@signed_in
def grade(number: int) -> ResponseReturnValue:
    question = tables.question(number) or abort(404)
    grading = model.grade(current_app.config["HR_MODEL_URL"], question, request.form["answer"])
    tables.keep(user() or "", number, grading)
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
    app.register_error_handler(model.ModelDown, model_down)
    return app
