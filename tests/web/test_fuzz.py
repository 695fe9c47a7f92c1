"""Whatever is sent: an answer or a problem, never our fault, never a stack trace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flightsvc.app import close_worker, create_app
from tests.web.running import EVALUATIONS, local_settings

FIELDS = ["question_number", "question", "answer", "resume_context", "score", "tenant", ""]
#: Lone surrogates too: JSON can carry them.
TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
GOOD = st.fixed_dictionaries(
    {
        "question_number": st.integers(1, 1_000_000) | st.sampled_from(["3", "3-1", "a.b_c"]),
        "question": st.text(min_size=1, max_size=50),
        "answer": st.text(min_size=1, max_size=50),
    },
    optional={"resume_context": st.text(max_size=50)},
)
FAST = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def client() -> Iterator[FlaskClient]:
    app = create_app(local_settings(max_waiters=900))
    yield app.test_client()
    close_worker(app)


def send(client: FlaskClient, body: bytes, content_type: str = "application/json") -> int:
    """The status, after a look at what every answer must be."""
    response = client.post(EVALUATIONS, data=body, content_type=content_type)
    assert response.status_code in (200, 400, 413, 415, 422), response.text
    assert "Traceback" not in response.text
    if response.status_code == 200:
        assert len(response.headers["Flight-Id"]) == 32
        judged = json.loads(response.data)
        if judged.get("code") != "AI_INPUT_EMPTY":  # of which there is nothing to judge
            assert 0 <= judged["score"] <= 100
    else:
        assert response.content_type == "application/problem+json"
        members = json.loads(response.data)
        assert members["status"] == response.status_code
        assert members["detail"]
    return response.status_code


@FAST
@given(body=st.binary(max_size=200))
def test_any_bytes(client: FlaskClient, body: bytes) -> None:
    send(client, body)


@FAST
@given(content_type=st.text(st.characters(codec="latin-1"), max_size=60))
def test_any_content_type(client: FlaskClient, content_type: str) -> None:
    if "\n" in content_type or "\r" in content_type:
        return  # no HTTP server lets such a header through
    send(client, b"{}", content_type)


@FAST
@given(value=VALUES)
def test_any_json(client: FlaskClient, value: object) -> None:
    assert send(client, json.dumps(value).encode()) != 200


@FAST
@given(body=GOOD, field=st.sampled_from(FIELDS), value=VALUES)
def test_one_field_of_a_good_request(
    client: FlaskClient, body: dict[str, Any], field: str, value: object
) -> None:
    send(client, json.dumps({**body, field: value}).encode())


@FAST
@given(body=GOOD)
def test_any_characters_are_judged(client: FlaskClient, body: dict[str, Any]) -> None:
    blank = not body["question"].strip()
    nul = any("\0" in str(value) for value in body.values())

    sent = json.dumps(body, ensure_ascii=False).encode()

    assert send(client, sent) == (422 if blank or nul else 200)


@FAST
@given(session_id=st.text(min_size=1, max_size=40), flight_id=st.text(max_size=40))
def test_any_address(client: FlaskClient, session_id: str, flight_id: str) -> None:
    posted = client.post(f"/v1/interviews/{session_id}/evaluations", json={})
    shown = client.get(f"/v1/flights/{flight_id}")

    assert posted.status_code in (404, 405, 422)
    assert shown.status_code == 404
    assert "Traceback" not in posted.text + shown.text
