"""The status page's routes: who may, what they say, what they cost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from itsdangerous import URLSafeTimedSerializer
from werkzeug.test import TestResponse

from flightsvc.app import FlightSvc, close_worker, create_app
from flightsvc.settings import Settings
from flightsvc.web import board_blueprint
from flightsvc.web.board_sign_in import COOKIE, LASTS_S
from tests.support.data import DATA_DIR
from tests.support.redis_server import RedisServer
from tests.web.declared import Declared

OPERATORS = {"token-anna": "anna", "tökén": "carl"}
ANNA = {"Authorization": "Bearer token-anna"}
READ = ["/flights", "/flights/state", "/flights/events"]


def app_of(**values: Any) -> Flask:
    given: dict[str, Any] = {"mode": "local", "operator_tokens": OPERATORS, "data_dir": DATA_DIR}
    given |= {"api_tokens": {"token-acme": "acme"}, "simulated_latency_ms": 0}
    return create_app(Settings(**{**given, **values}))


@pytest.fixture
def app(redis_server: RedisServer, namespace: str) -> Iterator[Flask]:
    app = app_of(mode="hybrid", redis_url=redis_server.url, namespace=namespace)
    yield app
    close_worker(app)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def sign_in(client: FlaskClient, token: str = "token-anna", **options: Any) -> TestResponse:
    return client.post("/flights", data={"token": token}, **options)


def cookie_of(response: TestResponse) -> str:
    (cookie,) = response.headers.getlist("Set-Cookie")
    return cookie


def plain(app: Flask) -> FlaskClient:
    """A client without a jar: it sends the cookies that it is told to."""
    return app.test_client(use_cookies=False)


def value_of(response: TestResponse) -> str:
    return cookie_of(response).partition("=")[2].partition(";")[0]


def with_cookie(value: str) -> dict[str, str]:
    return {"Cookie": f"{COOKIE}={value}"}


@pytest.mark.parametrize("path", READ)
def test_only_an_operator_reads(app: Flask, path: str) -> None:
    client = plain(app)
    wrong = [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic token-anna"}]
    wrong += [with_cookie("x"), with_cookie("token-anna"), with_cookie("ImFubmEi.aaaaaa.aaaaaaaa")]
    for headers in wrong:
        response = client.get(path, headers=headers)
        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"].startswith("Bearer ")
        assert response.mimetype == ("text/html" if path == "/flights" else PROBLEM)
        assert response.headers["Cache-Control"] == "no-store"
        assert b"board" not in response.data
    tenant = client.get(path, headers={"Authorization": "Bearer token-acme"})
    assert (tenant.status_code, tenant.get_json()["code"]) == (403, "FORBIDDEN")
    for token in ("token-anna", "tökén".encode().decode("latin-1")):
        response = client.head(path, headers={"Authorization": f"Bearer {token}"})
        assert (response.status_code, response.data) == (200, b"")


PROBLEM = "application/problem+json"


def test_a_wrong_token_is_told_by_the_form(client: FlaskClient) -> None:
    for token in ("wrong", "", "token-acme", "x" * 10_000, "\x00"):
        response = sign_in(client, token)
        assert response.status_code == 401
        assert "not known" in response.text
        assert "Set-Cookie" not in response.headers
        assert token == "" or token not in response.text
    assert "not known" not in client.get("/flights").text


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"json": {"token": "token-anna"}}, 415),
        ({"data": b"token=token-anna"}, 415),
        ({"data": {"token": "token-anna", "more": "x"}}, 422),
        ({"data": b"token=%ff", "content_type": "application/x-www-form-urlencoded"}, 401),
        ({"data": b"token=\xff", "content_type": "application/x-www-form-urlencoded"}, 400),
        ({"data": b"a&" * 50, "content_type": "application/x-www-form-urlencoded"}, 400),
        ({"data": {"token": "x" * 1_100_000}}, 413),
    ],
)
def test_what_is_no_such_form_is_refused(
    client: FlaskClient, sent: dict[str, Any], status: int
) -> None:
    response = client.post("/flights", **sent)

    assert response.status_code == status, response.text
    assert "Set-Cookie" not in response.headers


def test_signing_in_leads_to_the_page(client: FlaskClient) -> None:
    response = sign_in(client)

    assert (response.status_code, response.headers["Location"]) == (303, "flights")
    cookie = cookie_of(response)
    assert "token-anna" not in cookie
    assert {each.strip() for each in cookie.split(";")[1:] if "Expires" not in each} == {
        f"Max-Age={LASTS_S}", "HttpOnly", "Path=/flights", "SameSite=Strict",
    }  # fmt: skip
    for path in READ:
        assert client.head(path).status_code == 200
    page = client.get("/flights")
    assert "anna" in page.text
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none';")
    assert client.get("/v1/modules").status_code == 401  # it opens nothing else
    client.set_cookie(COOKIE, value_of(response), path="/")
    assert client.get("/v1/modules").status_code == 401
    assert client.get("/healthz").status_code == 200


def test_signing_out_ends_it(client: FlaskClient) -> None:
    sign_in(client)

    response = client.post("/flights/sign-out")

    assert (response.status_code, response.headers["Location"]) == (303, "../flights")
    assert "Max-Age=0" in cookie_of(response)
    assert "Path=/flights;" in cookie_of(response) + ";"
    assert client.get("/flights").status_code == 401


def test_a_cookie_holds_on_every_machine_until_the_tokens_change(
    client: FlaskClient, namespace: str
) -> None:
    value = value_of(sign_in(client))
    same = {"namespace": namespace}
    others = {
        200: [app_of(**same)],
        401: [
            app_of(**same, operator_tokens={"token-anna": "anna"}),
            app_of(**same, operator_tokens={**OPERATORS, "token-anna": "bert"}),
            app_of(namespace="another"),
        ],
    }
    for status, apps in others.items():
        for other in apps:
            answer = plain(other).get("/flights/state", headers=with_cookie(value))
            assert answer.status_code == status
            close_worker(other)


@pytest.mark.parametrize("part", range(3))
def test_a_cookie_that_was_changed_is_none(app: Flask, part: int) -> None:
    client = plain(app)
    value = value_of(sign_in(client))
    assert client.get("/flights/state", headers=with_cookie(value)).status_code == 200
    parts = value.split(".")
    parts[part] = ("B" if parts[part][0] != "B" else "C") + parts[part][1:]

    answer = client.get("/flights/state", headers=with_cookie(".".join(parts)))

    assert answer.status_code == 401


def test_a_cookie_ends(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    client = plain(app)
    value = value_of(sign_in(client))
    made = URLSafeTimedSerializer.loads

    def later(self: URLSafeTimedSerializer, text: str, max_age: int) -> Any:
        assert max_age == LASTS_S
        return made(self, text, max_age=-1)  # as if that time were over

    monkeypatch.setattr(URLSafeTimedSerializer, "loads", later)
    assert client.get("/flights/state", headers=with_cookie(value)).status_code == 401


def test_over_https_the_cookie_stays_there(client: FlaskClient) -> None:
    assert "Secure" in cookie_of(sign_in(client, base_url="https://ops.example"))
    assert "Secure" not in cookie_of(sign_in(client, base_url="http://ops.example"))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"Sec-Fetch-Site": "same-origin"}, 303),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "null"}, 303),
        ({"Sec-Fetch-Site": "none"}, 303),
        ({"Origin": "http://localhost"}, 303),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://localhost"}, 403),
        ({"Origin": "http://elsewhere.example"}, 403),
        ({"Origin": "http://localhost.elsewhere.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/flights", "/flights/sign-out"])
def test_another_site_s_form_signs_nobody_in_or_out(
    client: FlaskClient, path: str, headers: dict[str, str], status: int
) -> None:
    response = client.post(path, data={"token": "token-anna"}, headers=headers)

    assert response.status_code == status
    assert ("Set-Cookie" in response.headers) is (status == 303)


@pytest.mark.parametrize("script_name", ["", "/behind"])
def test_below_a_prefix_everything_stays_there(script_name: str) -> None:
    app = Flask("host")
    settings = Settings(mode="local", operator_tokens=OPERATORS, data_dir=DATA_DIR)
    FlightSvc(app, settings)
    app.register_blueprint(board_blueprint(), url_prefix="/ops")
    client, at = app.test_client(), {"environ_overrides": {"SCRIPT_NAME": script_name}}

    response = client.post("/ops/flights", data={"token": "token-anna"}, **at)
    out = client.post("/ops/flights/sign-out", **at)
    page = client.get("/ops/flights", headers=ANNA, **at)

    for each in (response, out):
        assert f"Path={script_name}/ops/flights;" in cookie_of(each) + ";"
    assert page.status_code == 200
    # every address is beside the page, so that it works below prefixes that only a proxy knows
    links = re.findall(r'(?:href|action|src)="([^"]*)"', page.text)
    assert {each for each in links if not each.startswith("data:")} == {
        "flights/sign-out", "flights?sort=newest",
    }  # fmt: skip
    close_worker(app)


@pytest.mark.parametrize("path", [*READ, "/flights/sign-out"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_operator_tokens_there_is_nothing(path: str, method: str) -> None:
    service, host = app_of(operator_tokens={}), Flask("host")
    FlightSvc(host, Settings(mode="local", data_dir=DATA_DIR))
    host.register_blueprint(board_blueprint())
    known = URLSafeTimedSerializer("", salt="").dumps("anna")
    for app in (service, host):
        for headers in ({}, ANNA, with_cookie(known)):
            response = plain(app).open(
                path, method=method, headers=headers, data={"token": "token-anna"}
            )
            wrong_method = app is host and (method == "GET") == path.endswith("out")
            expected = 405 if wrong_method and path != "/flights" else 404
            assert response.status_code == expected, (app, headers)
            assert "Set-Cookie" not in response.headers
        close_worker(app)


def test_the_state_as_json(client: FlaskClient) -> None:
    response = client.get("/flights/state", headers=ANNA)

    told = json.loads(response.data)
    assert response.headers["Cache-Control"] == "no-store"
    assert (told["coordination"], told["mode"], told["modules"]) == ("ok", "hybrid", [])
    assert told["live"] == {"total": 0, "whole": True, "flights": []}
    assert (told["worker"]["draining"], told["worker"]["flights"]) == (False, 0)
    assert told["savings"] == {"asked": 0, "calls": 0, "saved": 0, "percent": 0.0, "whole": True}


def test_no_token_stands_in_the_log(client: FlaskClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        sign_in(client)
        sign_in(client, "wrong-token")
        client.get("/flights/state", headers=ANNA)
    said = "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records)
    assert "operator anna has signed in" in said
    assert "token-anna" not in said
    assert "wrong-token" not in said


def test_every_answer_is_declared(client: FlaskClient) -> None:
    declared = Declared(client.get("/openapi.json").get_json())

    def check(method: str, path: str, status: int, **sent: Any) -> None:
        response = client.open(path, method=method, **sent)
        assert response.status_code == status
        declared.check(method, path, status, dict(response.headers), response.data)

    check("GET", "/flights", 401)
    check("GET", "/flights", 200, headers=ANNA)
    check("GET", "/flights", 403, headers={"Authorization": "Bearer token-acme"})
    check("GET", "/flights/state", 200, headers=ANNA)
    check("GET", "/flights/state", 401)
    check("GET", "/flights/events", 401)
    check("POST", "/flights", 303, data={"token": "token-anna"})
    check("POST", "/flights", 401, data={"token": "wrong"})
    check("POST", "/flights", 403, data={}, headers={"Origin": "http://elsewhere.example"})
    check("POST", "/flights/sign-out", 303)
    line = client.get("/flights/events", headers=ANNA, buffered=False)
    parts = (part for part in line.iter_encoded() if part.startswith(b"event: "))
    event = next(parts)
    line.close()
    declared.check("GET", "/flights/events", 200, dict(line.headers), event)
