"""Tokens, tenants, and the host's own authentication."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask, Request, abort
from flask.testing import FlaskClient

from flightsvc.app import FlightSvc, close_worker, create_app
from flightsvc.web import flights_blueprint, interview_blueprint
from tests.web.running import EVALUATIONS, local_settings

TOKENS = {"token-a": "acme", "token-a2": "acme", "token-b": "beta", "tökén": "gamma"}


@pytest.fixture
def guarded() -> Iterator[FlaskClient]:
    app = create_app(local_settings(api_tokens=TOKENS))
    yield app.test_client()
    close_worker(app)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer token",
        "Bearer token-a token-b",
        "Bearer token-aa",
        "Bearer TOKEN-A",
        "Basic dG9rZW4tYTo=",
        "token-a",
        "Bearer \u0301" + "x" * 5_000,
    ],
    ids=lambda header: ascii(header)[:24],
)
@pytest.mark.parametrize("path", [EVALUATIONS, "/v1/flights/" + "0" * 32])
def test_without_a_known_token_there_is_nothing(
    guarded: FlaskClient, header: str | None, path: str
) -> None:
    method = "POST" if path == EVALUATIONS else "GET"
    sent = header.encode("utf-8").decode("latin-1") if header is not None else None
    headers = {} if sent is None else {"Authorization": sent}

    response = guarded.open(path, method=method, headers=headers, data=b"not even JSON")

    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"].startswith("Bearer ")
    assert json.loads(response.data)["code"] == "UNAUTHENTICATED"
    if header:
        assert header not in response.text


@pytest.mark.parametrize("sent", ["Bearer token-a", "bearer token-a", "BEARER  token-a "])
def test_a_known_token_opens(guarded: FlaskClient, asked: dict[str, Any], sent: str) -> None:
    response = guarded.post(EVALUATIONS, json=asked, headers={"Authorization": sent})

    assert response.status_code == 200


def test_a_token_may_have_any_characters(guarded: FlaskClient, asked: dict[str, Any]) -> None:
    on_the_wire = "tökén".encode().decode("latin-1")

    assert guarded.post(EVALUATIONS, json=asked, headers=bearer(on_the_wire)).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_the_probes_are_open(guarded: FlaskClient, path: str) -> None:
    assert guarded.get(path).status_code == 200


def test_h21_two_tenants_share_nothing(guarded: FlaskClient, asked: dict[str, Any]) -> None:
    first = guarded.post(EVALUATIONS, json=asked, headers=bearer("token-a"))
    second = guarded.post(EVALUATIONS, json=asked, headers=bearer("token-b"))
    again = guarded.post(EVALUATIONS, json=asked, headers=bearer("token-a2"))

    assert first.headers["Flight-Id"] != second.headers["Flight-Id"]
    assert second.headers["Flight-Role"] == "local"
    assert again.headers["Flight-Id"] == first.headers["Flight-Id"]


def mounted(tenant_of: Any, **values: Any) -> FlaskClient:
    app = Flask("host")
    FlightSvc(app, local_settings(**values), tenant_of=tenant_of)
    app.register_blueprint(interview_blueprint())
    app.register_blueprint(flights_blueprint())
    return app.test_client()


def test_the_host_names_the_tenant(asked: dict[str, Any]) -> None:
    def tenant_of(request: Request) -> str | None:
        return request.headers.get("X-User")

    client = mounted(tenant_of, api_tokens=TOKENS)

    nobody = client.post(EVALUATIONS, json=asked, headers=bearer("token-a"))
    anna = client.post(EVALUATIONS, json=asked, headers={"X-User": "anna"})
    bert = client.post(EVALUATIONS, json=asked, headers={"X-User": "bert"})

    assert (nobody.status_code, anna.status_code, bert.status_code) == (401, 200, 200)
    assert anna.headers["Flight-Id"] != bert.headers["Flight-Id"]
    close_worker(client.application)


def test_the_host_may_refuse_in_its_own_way(asked: dict[str, Any]) -> None:
    client = mounted(lambda request: abort(403))
    response = client.post(EVALUATIONS, json=asked)
    assert (response.status_code, json.loads(response.data)["code"]) == (403, "FORBIDDEN")

    client = mounted(lambda request: abort(Flask.response_class("log in", 302, {"Location": "/"})))
    response = client.post(EVALUATIONS, json=asked)
    assert (response.status_code, response.headers["Location"]) == (302, "/")


@pytest.mark.parametrize("tenant", [7, b"acme", ("acme",), "", "acme" * 76, "é" * 151])
def test_a_tenant_that_cannot_be_one_is_our_fault(tenant: Any, asked: dict[str, Any]) -> None:
    response = mounted(lambda request: tenant).post(EVALUATIONS, json=asked)

    assert (response.status_code, json.loads(response.data)["code"]) == (500, "UNEXPECTED")
    assert "acme" not in response.text


def test_the_longest_tenant_has_its_row(asked: dict[str, Any]) -> None:
    client = mounted(lambda request: "é" * 150)
    assert client.post(EVALUATIONS, json=asked).status_code == 200
    known = json.loads(client.get("/v1/interviews/s1").data)
    assert [each["answer"]["simulated"] for each in known["evaluations"]] == [True]
    client.delete("/v1/interviews/s1")
    close_worker(client.application)
