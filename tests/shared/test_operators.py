"""The operators' routes: who may, what they say, and what they do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from flightsvc.app import FlightSvc, close_worker, create_app
from flightsvc.settings import Settings
from flightsvc.web import modules_blueprint
from tests.processes import wait_until
from tests.support.data import DATA_DIR
from tests.support.redis_server import RedisServer

TENANTS = {"token-acme": "acme"}
OPERATORS = {"token-anna": "anna", "token-bert": "bert", "tökén": "carl"}
ANNA = {"Authorization": "Bearer token-anna"}
ALL = [
    ("GET", "/v1/modules"),
    ("GET", "/v1/modules/chat"),
    ("PUT", "/v1/modules/chat"),
    ("DELETE", "/v1/modules/chat"),
    ("POST", "/v1/modules/chat/ack"),
    ("PUT", "/v1/modules/chat/rollback"),
    ("DELETE", "/v1/modules/chat/rollback"),
]


def app_of(**values: Any) -> Flask:
    given: dict[str, Any] = {"simulated_latency_ms": 0, "api_tokens": TENANTS}
    mine = {"operator_tokens": OPERATORS, "data_dir": DATA_DIR}
    return create_app(Settings(**{**given, **mine, **values}))


@pytest.fixture
def client(redis_server: RedisServer, namespace: str) -> Iterator[FlaskClient]:
    app = app_of(redis_url=redis_server.url, namespace=namespace)
    yield app.test_client()
    close_worker(app)


def problem(response: TestResponse, status: int, code: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(response.data)
    assert (response.status_code, told["code"]) == (status, code), told
    assert response.content_type == "application/problem+json"
    return told


@pytest.mark.parametrize(("method", "path"), ALL)
def test_only_an_operator_s_token_opens(client: FlaskClient, method: str, path: str) -> None:
    def ask(header: str | None) -> TestResponse:
        headers = {} if header is None else {"Authorization": header}
        return client.open(path, method=method, headers=headers, json={"reason": "x"})

    for header in (None, "", "Bearer", "Bearer wrong", "Basic token-anna", "token-anna"):
        response = ask(header)
        problem(response, 401, "UNAUTHENTICATED")
        assert response.headers["WWW-Authenticate"].startswith("Bearer ")
    told = problem(ask("Bearer token-acme"), 403, "FORBIDDEN")
    assert "acme" not in json.dumps(told)
    assert ask("Bearer token-anna").status_code == 200


def test_an_operator_s_token_opens_nothing_of_a_tenant(client: FlaskClient) -> None:
    for path in ("/v1/flights/" + "0" * 32, "/v1/interviews/s1/evaluations"):
        method = "GET" if "flights" in path else "POST"
        problem(client.open(path, method=method, headers=ANNA, json={}), 403, "FORBIDDEN")
    assert client.get("/healthz", headers=ANNA).status_code == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST", "OPTIONS"])
@pytest.mark.parametrize("path", ["/v1/modules", "/v1/modules/chat", "/v1/modules/chat/ack"])
def test_without_operator_tokens_there_is_nothing(method: str, path: str) -> None:
    app = app_of(mode="local", operator_tokens={})
    problem(app.test_client().open(path, method=method, headers=ANNA), 404, "NOT_FOUND")
    close_worker(app)


@pytest.mark.parametrize("header", [None, "Bearer token-anna", "Bearer token-acme"])
def test_a_host_that_mounts_them_without_tokens_serves_nothing(header: str | None) -> None:
    app = Flask("host")
    FlightSvc(app, Settings(mode="local", api_tokens=TENANTS, data_dir=DATA_DIR))
    app.register_blueprint(modules_blueprint(), url_prefix="/ops")
    headers = {} if header is None else {"Authorization": header}

    problem(app.test_client().get("/ops/v1/modules", headers=headers), 404, "NOT_FOUND")
    close_worker(app)


def test_the_host_s_own_sign_in_is_for_tenants_only(
    redis_server: RedisServer, namespace: str
) -> None:
    app = Flask("host")
    settings = Settings(
        redis_url=redis_server.url,
        namespace=namespace,
        operator_tokens=OPERATORS,
        data_dir=DATA_DIR,
    )
    FlightSvc(app, settings, tenant_of=lambda request: "anybody")
    app.register_blueprint(modules_blueprint())
    client = app.test_client()

    assert client.get("/v1/modules").status_code == 401
    assert client.get("/v1/modules", headers=ANNA).status_code == 200
    close_worker(app)


def test_pause_list_and_resume(client: FlaskClient) -> None:
    paused = client.put("/v1/modules/evaluation", headers=ANNA, json={"reason": "nonsense 模型"})
    again = client.get("/v1/modules/stage:evaluation", headers=ANNA)
    listed = json.loads(client.get("/v1/modules", headers=ANNA).data)

    told = json.loads(paused.data)
    assert paused.headers["Cache-Control"] == "no-store"
    assert told == json.loads(again.data)
    assert told["name"] == "stage:evaluation"
    since = told["paused"].pop("since")
    assert told["paused"] == {"by": "anna", "reason": "nonsense 模型", "automatic": False}
    assert since.endswith("Z")
    assert told["needs_person"] is None
    assert (listed["redis"], listed["age_s"] < 1) == ("ok", True)
    by_name = {module["name"]: module["paused"] for module in listed["modules"]}
    assert {name for name, pause in by_name.items() if pause} == {"stage:evaluation"}
    assert {"stage:chat", "provider:openai", "provider:simulated"} <= by_name.keys()

    carl = {"Authorization": "Bearer " + "tökén".encode().decode("latin-1")}
    for _ in range(2):
        resumed = client.delete("/v1/modules/evaluation", headers=carl)
        assert (resumed.status_code, json.loads(resumed.data)["paused"]) == (200, None)


def test_ack_and_roll_back(client: FlaskClient) -> None:
    shared = client.application.extensions["flightsvc"].shared
    for _ in range(2):
        shared.counters.failed("stage:chat", "AI_MODEL_OOM")
    shared.counters.send()
    shared.switches.need_person("stage:chat", "AI_MODEL_OOM", 2)

    shown = json.loads(client.get("/v1/modules/chat", headers=ANNA).data)
    assert (shown["needs_person"]["code"], shown["needs_person"]["failures"]) == ("AI_MODEL_OOM", 2)
    acked = json.loads(client.post("/v1/modules/chat/ack", headers=ANNA).data)
    assert acked["needs_person"] is None

    back = client.put("/v1/modules/chat/rollback", headers=ANNA, json={"reason": "drift"})
    assert json.loads(back.data)["rolled_back"]["reason"] == "drift"
    assert shared.watch.rolled_back("chat")
    restored = client.delete("/v1/modules/chat/rollback", headers=ANNA)
    assert json.loads(restored.data)["rolled_back"] is None
    problem(
        client.put("/v1/modules/openai/rollback", headers=ANNA, json={"reason": "x"}),
        404,
        "NOT_FOUND",
    )


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"{}", 422, "reason"),
        (b'{"reason": ""}', 422, "reason"),
        (b'{"reason": "a\\nb"}', 422, "printable"),
        (b'{"reason": "x", "by": "bert"}', 422, "by"),
        (b'{"reason": 7}', 422, "reason"),
        (b"[]", 422, "the body"),
        (b"{", 400, "JSON"),
        (b'{"reason": "x", "reason": "y"}', 400, "twice"),
        (json.dumps({"reason": "x" * 501}).encode(), 422, "reason"),
    ],
)
def test_a_pause_needs_a_reason(client: FlaskClient, body: bytes, status: int, says: str) -> None:
    response = client.put(
        "/v1/modules/chat", headers=ANNA, data=body, content_type="application/json"
    )

    assert response.status_code == status
    assert says in json.loads(response.data)["detail"]
    assert json.loads(client.get("/v1/modules/chat", headers=ANNA).data)["paused"] is None


def test_an_unknown_module_is_not_found(client: FlaskClient) -> None:
    response = client.put("/v1/modules/evaluaton", headers=ANNA, json={"reason": "x"})

    assert "did you mean stage:evaluation?" in problem(response, 404, "NOT_FOUND")["detail"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/v1/modules/chat", {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"}),
        ("PUT", "/v1/modules", {"GET", "HEAD", "OPTIONS"}),
        ("GET", "/v1/modules/chat/ack", {"POST", "OPTIONS"}),
    ],
)
def test_other_methods_are_refused(
    client: FlaskClient, method: str, path: str, allowed: set[str]
) -> None:
    response = client.open(path, method=method, headers=ANNA)

    problem(response, 405, "METHOD_NOT_ALLOWED")
    assert set(response.headers["Allow"].split(", ")) == allowed


def test_without_redis_it_says_what_is_known(own_redis: RedisServer, namespace: str) -> None:
    app = app_of(redis_url=own_redis.url, namespace=namespace, heartbeat_ms=100)
    client = app.test_client()
    client.put("/v1/modules/chat", headers=ANNA, json={"reason": "x"})
    own_redis.freeze()
    watch = app.extensions["flightsvc"].shared.watch
    wait_until(lambda: not watch.up)

    refused = client.delete("/v1/modules/chat", headers=ANNA)
    listed = json.loads(client.get("/v1/modules", headers=ANNA).data)

    told = problem(refused, 503, "COORDINATION_UNAVAILABLE")
    assert "nothing was changed" in told["detail"]
    assert refused.headers["Retry-After"] == "1"
    assert listed["redis"] == "timeout"
    assert listed["age_s"] > 0.2
    (paused,) = (module["name"] for module in listed["modules"] if module["paused"])
    assert paused == "stage:chat"
    own_redis.thaw()
    wait_until(lambda: client.delete("/v1/modules/chat", headers=ANNA).status_code == 200)
    close_worker(app)


def test_in_mode_local_nothing_can_be_switched() -> None:
    app = app_of(mode="local")
    client = app.test_client()

    refused = client.put("/v1/modules/chat", headers=ANNA, json={"reason": "x"})
    listed = json.loads(client.get("/v1/modules", headers=ANNA).data)

    assert "mode is local" in problem(refused, 503, "COORDINATION_UNAVAILABLE")["detail"]
    assert (listed["redis"], listed["age_s"]) == ("down", None)
    close_worker(app)
