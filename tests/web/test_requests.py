"""What a request may look like, and what it is told otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.web.running import EVALUATIONS

JSON = "application/json"


def send(client: FlaskClient, body: bytes, content_type: str | None = JSON) -> TestResponse:
    return client.post(EVALUATIONS, data=body, content_type=content_type)


def is_problem(response: TestResponse, status: int, code: str) -> dict[str, Any]:
    """The members of a problem, checked for what all problems have."""
    assert (response.status_code, response.content_type) == (status, "application/problem+json")
    members: dict[str, Any] = json.loads(response.data)
    assert members["code"] == code, members
    assert members["status"] == status
    assert members["type"].startswith("urn:problem-type:flightsvc:")
    assert members["title"]
    assert members["detail"]
    assert "Traceback" not in response.text
    assert "File " not in response.text
    if status in (503, 504):
        assert int(response.headers["Retry-After"]) >= 1
    return members


def calls(app: Flask) -> float:
    """Model calls that this app's worker made."""
    found: dict[str, float] = app.extensions["flightsvc"].metrics.snapshot()
    return sum(n for name, n in found.items() if name.startswith("guard.attempts."))


def test_a_good_request_is_judged(client: FlaskClient, asked: dict[str, Any]) -> None:
    response = client.post(EVALUATIONS, json=asked)

    assert (response.status_code, response.content_type) == (200, JSON)
    judged = json.loads(response.data)
    assert set(judged) == {
        "score",
        "logic_ok",
        "missing_points",
        "feedback",
        "follow_up_needed",
        "follow_up_question",
        "simulated",
    }
    assert 0 <= judged["score"] <= 100
    assert judged["simulated"] is True
    assert response.headers["Flight-Simulated"] == "true"
    assert response.headers["Flight-Role"] == "local"
    assert len(response.headers["Flight-Id"]) == 32
    assert response.headers["Flight-Fence"].isdigit()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe{\x00}\x00",
        b'{"answer": "\xe4\xb8"}',
        b"\xef\xbb\xbf{}",
        b'{"score": NaN}',
        b'{"a": -Infinity}',
        b"1" * 10_000,
        b"[" * 100_000,
        b'{"a":' * 30_000,
        b"{} {}",
        b"answer=x",
    ],
    ids=lambda body: ascii(body[:12]),
)
def test_what_is_not_json_is_refused(client: FlaskClient, body: bytes) -> None:
    is_problem(send(client, body), 400, "JSON_INVALID")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"1" * 10_000, "digits"),
        (b"[" * 100_000, "nested"),
        (b'{"score": NaN}', "not JSON"),
        (b'{"a": "\xff"}', "not JSON"),
    ],
    ids=["digits", "deep", "nan", "latin"],
)
def test_it_is_told_why(client: FlaskClient, body: bytes, says: str) -> None:
    assert says in send(client, body).get_json()["detail"]


def test_one_name_twice_is_refused(client: FlaskClient, asked: dict[str, Any]) -> None:
    doubled = json.dumps(asked)[:-1] + ', "answer": "another"}'

    is_problem(send(client, doubled.encode()), 400, "JSON_DUPLICATE_NAME")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"question_number": None}, "question_number"),
        ({"question_number": 0}, "question_number"),
        ({"question_number": True}, "question_number"),
        ({"question_number": "three thousand!"}, "question_number"),
        ({"question": ""}, "question"),
        ({"question": 5}, "question"),
        ({"answer": None}, "answer"),
        ({"answer": "a\0b"}, "answer"),
        ({"answer": "\ud800"}, "answer"),
        ({"answer": "x" * 50_001}, "answer"),
        ({"resume_context": ["x"]}, "resume_context"),
        ({"tenant": "acme"}, "tenant"),
        ({"\udfff": 1}, "the body"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_wrong_field_is_named(
    client: FlaskClient, asked: dict[str, Any], change: dict[str, Any], field: str
) -> None:
    response = send(client, json.dumps({**asked, **change}).encode())

    members = is_problem(response, 422, "INPUT_INVALID")
    assert members["detail"].startswith(field + ": ")
    assert members["retryable"] is False


def test_an_empty_answer_is_guided_and_no_model_is_asked(
    app: Flask, client: FlaskClient, asked: dict[str, Any]
) -> None:
    for _ in range(2):
        response = client.post(EVALUATIONS, json={**asked, "answer": "  \n"})
        body = json.loads(response.data)
        assert (response.status_code, body["code"]) == (200, "AI_INPUT_EMPTY")
        assert response.headers["Flight-Fallback"] == body["fallback"] == "template"
        assert body["message"].startswith("There is no answer to judge yet.")
    assert calls(app) == 0


@pytest.mark.parametrize("body", [b"[]", b"null", b"3", b'"text"', b"true"])
def test_a_body_that_is_no_object_is_refused(client: FlaskClient, body: bytes) -> None:
    is_problem(send(client, body), 422, "INPUT_INVALID")


def test_the_problem_does_not_repeat_the_answer(client: FlaskClient, asked: dict[str, Any]) -> None:
    response = send(client, json.dumps({**asked, "answer": {"SECRET": "SECRET"}}).encode())

    is_problem(response, 422, "INPUT_INVALID")
    assert "SECRET" not in response.text


@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "text/json", "multipart/form-data", "application/json; charset=gbk"],
)
def test_other_content_types_are_refused(
    client: FlaskClient, asked: dict[str, Any], content_type: str | None
) -> None:
    body = json.dumps(asked).encode()

    is_problem(send(client, body, content_type), 415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize(
    "content_type",
    ["application/json; charset=UTF-8", "Application/JSON", "application/vnd.acme+json"],
)
def test_json_by_its_other_names_is_fine(
    client: FlaskClient, asked: dict[str, Any], content_type: str
) -> None:
    assert send(client, json.dumps(asked).encode(), content_type).status_code == 200


def test_a_compressed_body_is_refused(client: FlaskClient, asked: dict[str, Any]) -> None:
    response = client.post(EVALUATIONS, json=asked, headers={"Content-Encoding": "gzip"})

    is_problem(response, 415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_body_over_the_limit_is_refused(app: Flask, client: FlaskClient) -> None:
    is_problem(send(client, b" " * 200_001), 413, "PAYLOAD_TOO_LARGE")
    assert calls(app) == 0


def test_a_body_at_the_limit_is_read(client: FlaskClient, asked: dict[str, Any]) -> None:
    assert send(client, json.dumps(asked).encode().ljust(200_000)).status_code == 200


@pytest.mark.parametrize(
    "session_id", ["x" * 129, "a b", "s%00", "s%0a", "%E9%9D%A2", "a|b", "a,b"]
)
def test_a_session_id_has_bounds(
    client: FlaskClient, asked: dict[str, Any], session_id: str
) -> None:
    response = client.post(f"/v1/interviews/{session_id}/evaluations", json=asked)

    assert "session_id" in is_problem(response, 422, "INPUT_INVALID")["detail"]


@pytest.mark.parametrize("session_id", ["1", "x" * 128, "2026-11.a_b~c:d@e"])
def test_a_session_id_within_its_bounds(
    client: FlaskClient, asked: dict[str, Any], session_id: str
) -> None:
    assert client.post(f"/v1/interviews/{session_id}/evaluations", json=asked).status_code == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "TRACE", "BREW"])
def test_another_method_is_refused(client: FlaskClient, method: str) -> None:
    response = client.open(EVALUATIONS, method=method)

    assert response.status_code == 405
    assert set(response.headers["Allow"].split(", ")) >= {"POST", "OPTIONS"}
    if method != "HEAD":
        is_problem(response, 405, "METHOD_NOT_ALLOWED")


def test_options_names_the_methods(client: FlaskClient) -> None:
    response = client.options(EVALUATIONS)

    assert (response.status_code, response.data) == (204, b"")
    assert response.headers["Allow"] == "POST, OPTIONS"


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/interviews/s1/x", "/v1/nothing", "/static/x"])
def test_an_unknown_address_is_a_problem_too(client: FlaskClient, path: str) -> None:
    is_problem(client.get(path), 404, "NOT_FOUND")


@pytest.mark.parametrize("flight_id", ["0" * 32, "0" * 31, "G" * 32, "x", "%00", "../x"])
def test_an_unknown_flight_is_not_there(client: FlaskClient, flight_id: str) -> None:
    is_problem(client.get(f"/v1/flights/{flight_id}"), 404, "NOT_FOUND")


def test_health_answers_head_and_get(client: FlaskClient) -> None:
    assert client.get("/healthz").json == {"status": "ok"}
    head = client.head("/healthz")
    assert (head.status_code, head.data) == (200, b"")
    assert client.get("/readyz").json == {"status": "ready", "redis": "off"}


def test_answers_are_counted_by_route_and_status(
    app: Flask, client: FlaskClient, asked: dict[str, Any]
) -> None:
    client.post(EVALUATIONS, json=asked)
    client.post(EVALUATIONS, json=asked)
    client.post(EVALUATIONS, json={})
    client.get(EVALUATIONS)
    client.get("/nothing")
    client.get("/v1/flights/x")
    client.get("/healthz")

    counted = app.extensions["flightsvc"].metrics.snapshot()
    assert {name: n for name, n in counted.items() if name.startswith("http.")} == {
        "http.answers.evaluations.200": 2,
        "http.answers.evaluations.422": 1,
        "http.answers.evaluations.405": 1,
        "http.answers.flight.404": 1,
        "http.answers.none.404": 1,
    }
