"""The blueprints in an app that has a life of its own (H45), and what the extension refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from flask import Flask, Request
from flask.testing import FlaskClient

from flightsvc.app import FlightSvc, close_worker, create_app
from flightsvc.errors import Draining, SettingsError
from flightsvc.web import flights_blueprint, health_blueprint, interview_blueprint
from tests.web.running import EVALUATIONS, local_settings


def host(prefix: str, service: FlightSvc | None = None) -> Flask:
    """An app with error handlers and a page of its own."""
    app = Flask("host")
    (service or FlightSvc(settings=local_settings())).init_app(app)
    app.register_blueprint(interview_blueprint(), url_prefix=prefix)
    app.register_blueprint(flights_blueprint(), url_prefix=prefix)

    @app.get("/crash")
    def crash() -> str:
        raise ZeroDivisionError

    app.register_error_handler(404, lambda error: ("host 404", 404))
    app.register_error_handler(405, lambda error: ("host 405", 405))
    app.register_error_handler(413, lambda error: ("host 413", 413))
    app.register_error_handler(415, lambda error: ("host 415", 415))
    app.register_error_handler(Exception, lambda error: ("host 500", 500))
    return app


STAGES = ("evaluations", "follow-ups", "extractions", "demeanor")


def rules(app: Flask) -> set[str]:
    return {rule.rule for rule in app.url_map.iter_rules() if rule.endpoint != "static"}


@pytest.mark.parametrize("prefix", ["", "/api", "/a/b"])
def test_h45_the_url_map_is_as_documented(prefix: str, asked: dict[str, Any]) -> None:
    app = host(prefix or "/") if prefix == "" else host(prefix)

    assert rules(app) == {
        "/crash",
        *(f"{prefix}/v1/interviews/<session_id>{rest}" for rest in ("", "/report")),
        *(f"{prefix}/v1/interviews/<session_id>/{stage}" for stage in STAGES),
        *(f"{prefix}/v1/interviews/<session_id>/{stage}/<flight_id>" for stage in STAGES),
        prefix + "/v1/flights/<flight_id>",
    }
    assert app.test_client().post(prefix + EVALUATIONS, json=asked).status_code == 200
    close_worker(app)


def test_h45_three_app_factories_and_one_extension(asked: dict[str, Any]) -> None:
    service = FlightSvc(settings=local_settings())
    apps = [host(prefix, service) for prefix in ("/one", "/two", "/three")]

    replies = [
        app.test_client().post(prefix + EVALUATIONS, json=asked)
        for app, prefix in zip(apps, ("/one", "/two", "/three"), strict=True)
    ]

    assert [reply.status_code for reply in replies] == [200, 200, 200]
    assert len({reply.headers["Flight-Id"] for reply in replies}) == 1
    assert [reply.headers["Flight-Role"] for reply in replies] == ["local", "l1", "l1"]
    service.close()


def test_h45_twice_in_one_app(asked: dict[str, Any]) -> None:
    app = Flask("host")
    FlightSvc(app, local_settings())
    app.register_blueprint(interview_blueprint(), url_prefix="/old")
    app.register_blueprint(interview_blueprint("interview2"), url_prefix="/new")
    client = app.test_client()

    assert client.post("/old" + EVALUATIONS, json=asked).status_code == 200
    assert client.post("/new" + EVALUATIONS, json=asked).headers["Flight-Role"] == "l1"
    close_worker(app)


def test_the_hosts_error_handlers_stay_its_own(asked: dict[str, Any]) -> None:
    client = host("/ai").test_client()

    assert client.get("/nothing").text == "host 404"
    assert client.post("/crash").text == "host 405"
    assert client.get("/crash").text == "host 500"


def test_errors_of_our_routes_are_problems_in_any_host() -> None:
    client = host("/ai").test_client()

    def code(method: str, path: str, **sent: Any) -> tuple[int, str]:
        response = client.open("/ai" + path, method=method, **sent)
        return response.status_code, json.loads(response.data)["code"]

    assert code("GET", EVALUATIONS) == (405, "METHOD_NOT_ALLOWED")
    assert code("POST", EVALUATIONS, data="x") == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert code("POST", EVALUATIONS, json={}) == (422, "INPUT_INVALID")
    assert code("GET", "/v1/flights/none") == (404, "NOT_FOUND")
    big = b" " * (local_settings().max_body_bytes + 1)
    sent = code("POST", EVALUATIONS, data=big, content_type="application/json")
    assert sent == (413, "PAYLOAD_TOO_LARGE")


def test_the_hosts_own_limit_holds_too(asked: dict[str, Any]) -> None:
    app = host("/ai")
    app.config["MAX_CONTENT_LENGTH"] = 10

    response = app.test_client().post("/ai" + EVALUATIONS, json=asked)

    assert (response.status_code, json.loads(response.data)["code"]) == (413, "PAYLOAD_TOO_LARGE")


def test_a_blueprint_without_the_extension_says_so(caplog: pytest.LogCaptureFixture) -> None:
    app = Flask("host")
    app.register_blueprint(interview_blueprint())

    response = app.test_client().post(EVALUATIONS, json={})

    assert response.status_code == 500
    assert "FlightSvc(app)" not in response.text
    assert "FlightSvc(app)" in caplog.text


def test_what_nobody_foresaw_is_logged_without_its_words(
    asked: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    def tenant_of(request: Request) -> str:
        raise LookupError(request.get_json()["answer"])

    app = Flask("host")
    FlightSvc(app, local_settings(), tenant_of=tenant_of)
    app.register_blueprint(interview_blueprint())

    response = app.test_client().post(EVALUATIONS, json=asked)

    assert (response.status_code, json.loads(response.data)["code"]) == (500, "UNEXPECTED")
    assert "LookupError" not in response.text
    assert "LookupError" in caplog.text
    assert "tenant_of" in caplog.text
    assert asked["answer"] not in caplog.text + response.text


def test_a_worker_that_stops_says_so(asked: dict[str, Any]) -> None:
    app = Flask("host")
    service = FlightSvc(app, local_settings())
    app.register_blueprint(interview_blueprint())
    app.register_blueprint(health_blueprint())
    client: FlaskClient = app.test_client()
    assert client.get("/readyz").status_code == 200

    service.drain()
    response = client.get("/readyz")
    assert (response.status_code, json.loads(response.data)["status"]) == (503, "draining")
    assert client.get("/healthz").status_code == 200
    response = client.post(EVALUATIONS, json=asked)
    assert (response.status_code, json.loads(response.data)["code"]) == (503, "DRAINING")
    assert int(response.headers["Retry-After"]) >= 1

    service.close()
    with pytest.raises(Draining):
        _ = service.flights
    assert client.get("/healthz").status_code == 200


def test_without_any_redis_the_fix_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("_FLIGHTSVC_EMBEDDED_URL", raising=False)
    service = FlightSvc(settings=local_settings().model_copy(update={"mode": "hybrid"}))

    with pytest.raises(SettingsError, match="FLIGHTSVC_REDIS_URL"):
        _ = service.flights


def test_an_extension_without_an_app_says_so() -> None:
    with pytest.raises(SettingsError, match="init_app"):
        _ = FlightSvc(settings=local_settings()).authenticator


@pytest.mark.parametrize("start", ["create_app()", "FlightSvc(Flask('host'))"])
def test_an_unpatched_process_is_refused(start: str) -> None:
    code = f"from flask import Flask; from flightsvc.app import *; {start}"
    env = {**os.environ, "FLIGHTSVC_MODE": "local"}

    ended = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60
    )

    assert ended.returncode != 0
    assert "SettingsError" in ended.stderr
    assert "monkey.patch_all()" in ended.stderr


def test_two_services_in_one_process_are_apart(asked: dict[str, Any]) -> None:
    first, second = create_app(local_settings()), create_app(local_settings())

    close_worker(first)

    assert first.test_client().post(EVALUATIONS, json=asked).status_code == 503
    assert second.test_client().post(EVALUATIONS, json=asked).status_code == 200
    close_worker(second)
