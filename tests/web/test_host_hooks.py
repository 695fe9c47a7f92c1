"""What a host's own hooks, middleware and limits do to our routes, and ours to them."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Blueprint, Flask, Response, abort, request
from flask.testing import FlaskClient
from flask_compress import Compress
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client, TestResponse

from flightsvc.app import FlightSvc
from flightsvc.web import flights_blueprint, interview_blueprint
from tests.processes import ROOT
from tests.stages.scene import PDF, form
from tests.web.running import EVALUATIONS, local_settings

EXTRACTIONS = "/v1/interviews/s1/extractions"


@pytest.fixture
def service() -> Iterator[FlightSvc]:
    service = FlightSvc(settings=local_settings())
    yield service
    service.close()


@pytest.fixture
def host(service: FlightSvc) -> Flask:
    """An app that mounts the interview at /ai."""
    app = Flask("host")
    service.init_app(app)
    app.register_blueprint(interview_blueprint(), url_prefix="/ai")
    return app


def code(response: TestResponse) -> tuple[int, str]:
    assert response.mimetype == "application/problem+json"
    return response.status_code, json.loads(response.data)["code"]


def upload(client: FlaskClient, **fields: str) -> TestResponse:
    body, kind = form(PDF, **fields)
    return client.post("/ai" + EXTRACTIONS, data=body, content_type=kind)


def test_hooks_run_once_around_each_answer(host: Flask, asked: dict[str, Any]) -> None:
    seen: list[str] = []
    host.before_request(lambda: seen.append("before"))
    host.teardown_request(lambda error: seen.append(f"request {error}"))
    host.teardown_appcontext(lambda error: seen.append(f"app {error}"))

    @host.after_request
    def name_host(response: Response) -> Response:
        seen.append("after")
        response.headers["X-Host"] = "host"
        return response

    client = host.test_client()
    good, bad = (client.post("/ai" + EVALUATIONS, json=value) for value in (asked, {}))

    assert (good.status_code, code(bad)) == (200, (422, "INPUT_INVALID"))
    assert good.headers["X-Host"] == bad.headers["X-Host"] == "host"
    assert seen == ["before", "after", "request None", "app None"] * 2


def test_a_host_that_turns_callers_away_is_obeyed(host: Flask, asked: dict[str, Any]) -> None:
    host.before_request(lambda: abort(403))
    host.register_error_handler(403, lambda error: ("host 403", 403))

    assert host.test_client().post("/ai" + EVALUATIONS, json=asked).text == "host 403"


READ_BY_HOOK: list[Callable[[], object]] = [
    lambda: request.get_data(),
    lambda: request.get_json(silent=True),
    lambda: request.form,
    lambda: request.values.get("csrf_token"),
    lambda: request.files.get("file"),
    lambda: (request.get_data(), request.form),
]


@pytest.mark.parametrize("read", READ_BY_HOOK)
def test_a_hook_may_have_read_the_body(
    host: Flask, asked: dict[str, Any], read: Callable[[], object]
) -> None:
    client, looking = host.test_client(), [False]

    @host.before_request
    def look() -> None:
        if looking[0]:
            read()

    unread = client.post("/ai" + EVALUATIONS, json=asked), upload(client, position="dev")
    looking[0] = True
    seen = client.post("/ai" + EVALUATIONS, json=asked), upload(client, position="dev")

    assert [reply.status_code for reply in (*unread, *seen)] == [200] * 4
    for one, other in zip(unread, seen, strict=True):
        assert one.headers["Flight-Id"] == other.headers["Flight-Id"]
    assert code(upload(client, csrf_token="x")) == (422, "INPUT_INVALID")


@pytest.mark.parametrize("read", [None, READ_BY_HOOK[0], READ_BY_HOOK[2]])
def test_uploads_keep_to_the_hosts_limit(
    host: Flask, service: FlightSvc, read: Callable[[], object] | None
) -> None:
    host.config["MAX_CONTENT_LENGTH"] = len(PDF)  # the form around it is more
    host.register_error_handler(413, lambda error: ("host 413", 413))

    @host.before_request
    def look() -> None:
        if read is not None:
            read()

    response = upload(host.test_client())

    if read is None:
        assert code(response) == (413, "PAYLOAD_TOO_LARGE")
        assert f"at most {len(PDF)} bytes" in json.loads(response.data)["detail"]
    else:  # its own hook was refused its own reading
        assert response.text == "host 413"


def test_a_host_that_compresses(host: Flask, asked: dict[str, Any]) -> None:
    host.config.update(COMPRESS_MIN_SIZE=1, COMPRESS_ALGORITHM=["gzip"])
    Compress(host)
    client = host.test_client()
    asking = {"headers": {"Accept-Encoding": "gzip"}, "json": asked}

    packed = client.post("/ai" + EVALUATIONS, **asking)
    plain = client.post("/ai" + EVALUATIONS, json=asked)
    steps = client.post("/ai" + EVALUATIONS + "?progress=1", **asking)

    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert packed.headers["Flight-Id"] == plain.headers["Flight-Id"]
    assert "Content-Encoding" not in steps.headers
    assert "event: received" in steps.text


def test_below_a_blueprint_of_the_host(service: FlightSvc, asked: dict[str, Any]) -> None:
    app = Flask("host")
    service.init_app(app)
    area = Blueprint("area", "host", url_prefix="/area")
    area.register_blueprint(interview_blueprint(), url_prefix="/ai")
    area.register_blueprint(flights_blueprint(), url_prefix="/ai")
    app.register_blueprint(area)
    client = app.test_client()

    judged = client.post("/area/ai" + EVALUATIONS, json=asked)
    rows = client.get("/area/ai/v1/interviews/s1")

    assert (judged.status_code, rows.status_code) == (200, 200)
    assert code(client.get("/area/ai/v1/flights/x")) == (404, "NOT_FOUND")


def test_below_a_prefix_with_a_value(asked: dict[str, Any]) -> None:
    app = Flask("host")
    slow = local_settings().model_copy(update={"simulated_latency_ms": 400})
    service = FlightSvc(app, slow, tenant_of=lambda request: (request.view_args or {})["company"])
    app.register_blueprint(interview_blueprint(), url_prefix="/companies/<company>/ai")
    client = app.test_client()

    later = client.post(
        "/companies/acme/ai" + EVALUATIONS, json=asked, headers={"Prefer": "respond-async"}
    )
    acme = client.post("/companies/acme/ai" + EVALUATIONS, json=asked)
    fetched = client.get(later.headers["Location"])
    others = client.get(later.headers["Location"].replace("acme", "beta"))
    beta = client.post("/companies/beta/ai" + EVALUATIONS, json=asked)
    service.close()

    assert later.status_code == 202
    assert later.headers["Location"].startswith("/companies/acme/ai/v1/interviews/s1/evaluations/")
    assert (acme.status_code, fetched.status_code, fetched.json) == (200, 200, acme.json)
    assert code(others) == (404, "NOT_FOUND")
    assert beta.headers["Flight-Id"] != acme.headers["Flight-Id"]


def test_below_another_server_path(host: Flask, asked: dict[str, Any]) -> None:
    """As where a proxy strips a prefix and says so (SCRIPT_NAME)."""
    outer = Client(DispatcherMiddleware(Flask("root"), {"/shop": host}))

    later = outer.post(
        "/shop/ai" + EVALUATIONS, json=asked, headers={"Prefer": "respond-async, wait=0"}
    )

    where = later.headers.get("Location", f"/shop/ai{EVALUATIONS}/" + later.headers["Flight-Id"])
    assert where.startswith("/shop/ai/v1/")
    assert outer.get(where).status_code == 200


WRAPPED = """
from gevent import monkey

monkey.patch_all()

from flask import Flask
from flightsvc.app import FlightSvc, open_worker
from flightsvc.settings import Settings

services = [FlightSvc(Flask(mode), Settings(mode=mode)) for mode in ("local", "distributed")]
open_worker()
"""


def test_a_fault_behind_middleware_stops_the_start_too(tmp_path: Path) -> None:
    """A worker that serves no Flask app itself opens all apps that it finds."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    env.pop("_FLIGHTSVC_EMBEDDED_URL", None)

    ended = subprocess.run(
        [sys.executable, "-c", WRAPPED],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ended.returncode != 0
    assert "FLIGHTSVC_REDIS_URL is not set" in ended.stderr
