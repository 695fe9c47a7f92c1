"""`/openapi.json` says what the OpenAI door takes and gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator

from flightsvc.app import close_worker, create_app
from flightsvc.gateway.chat import Chat, InvalidChat
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.web.openapi_chat import ChatBody
from tests.web.declared import Declared
from tests.web.running import ACME, MODEL, TOKENS, local_settings
from tests.web.test_openapi import ADA, check, document

CHATS, MODELS = "/v1/chat/completions", "/v1/models"
SAID = [{"role": "user", "content": "What is a fence?"}]


@pytest.fixture
def app(model: ModelServerProcess) -> Iterator[Flask]:
    settings = {
        "provider": "openai",
        "openai_base_url": model.base_url,
        "openai_model": MODEL,
        "gateway_models": (MODEL,),
        "api_tokens": TOKENS,
        "operator_tokens": {"token-ada": "ada"},
        "stages": {"chat": {"retry_delays_ms": ()}},
    }
    app = create_app(local_settings().checked(mode="local", **settings))
    yield app
    close_worker(app)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def declared(client: FlaskClient) -> Declared:
    return document(client)


def ask(client: FlaskClient, declared: Declared, text: str = "", **fields: Any) -> Any:
    """One chat, whose answer is declared."""
    headers = {**ACME, **fields.pop("headers", {})}
    said = [{"role": "user", "content": text}] if text else SAID
    body = {"model": MODEL, "messages": said, **fields}
    response = client.post(CHATS, json=body, headers=headers)
    check(declared, "POST", CHATS, response)
    return response


@pytest.mark.parametrize("options", [None, {"include_usage": True}])
def test_answers_are_declared(
    client: FlaskClient, declared: Declared, options: dict[str, bool] | None
) -> None:
    whole = ask(client, declared)
    chunks = ask(client, declared, stream=True, stream_options=options)

    assert (whole.status_code, whole.mimetype) == (200, "application/json")
    assert (chunks.status_code, chunks.mimetype) == (200, "text/event-stream")
    assert chunks.data.endswith(b"data: [DONE]\n\n")


def test_models_are_declared(client: FlaskClient, declared: Declared) -> None:
    for headers, status in ((ACME, 200), ({}, 401), (ADA, 403)):
        response = client.get(MODELS, headers=headers)
        check(declared, "GET", MODELS, response)
        assert response.status_code == status


@pytest.mark.parametrize(
    ("behave", "status", "code"),
    [
        ({"status": 400}, 400, "provider_rejected"),
        ({"status": 400, "body": {"error": {"message": "no", "code": "its own"}}}, 400, "its own"),
        ({"status": 409}, 409, "provider_rejected"),
        ({"status": 429, "retry_after": 7}, 429, "provider_rate_limited"),
        ({"status": 401}, 503, "provider_auth_failed"),
        ({"status": 500}, 503, "provider_unavailable"),
        ({"cut_before_answer": True}, 503, "provider_unreachable"),
        ({"answer": "text", "text": "cut", "finish_reason": None}, 503, "ai_answer_incomplete"),
    ],
)
def test_failures_of_the_model_are_declared(
    client: FlaskClient,
    declared: Declared,
    model: ModelServerProcess,
    behave: dict[str, Any],
    status: int,
    code: str,
) -> None:
    model.script({"rules": [], "default": behave})

    response = ask(client, declared)

    assert (response.status_code, response.get_json()["error"]["code"]) == (status, code)
    assert response.headers["x-should-retry"] in ("true", "false")


def test_an_error_inside_of_a_stream_is_declared(
    client: FlaskClient, declared: Declared, model: ModelServerProcess
) -> None:
    model.script({"rules": [], "default": {"cut_after_chunks": 2, "cut": "clean"}})

    response = ask(client, declared, stream=True)

    *_, last = response.text.strip().split("\n\n")
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "ai_answer_incomplete"
    assert "flight_interrupted" in told(declared, 503)


def test_one_key_for_two_chats_is_declared(
    client: FlaskClient, declared: Declared, model: ModelServerProcess
) -> None:
    model.script({"rules": [], "default": {"gate": "go", "gate_after_chunks": 1}})
    name = {"Flight-Key": "mine"}
    body = {"model": MODEL, "messages": SAID, "stream": True}
    first = client.post(CHATS, json=body, headers={**ACME, **name})  # and does not end

    second = ask(client, declared, "another", headers=name)

    model.open_gate("go")
    assert first.data.endswith(b"data: [DONE]\n\n")
    assert (second.status_code, second.get_json()["error"]["code"]) == (422, "key_conflict")


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        ({"json": {"messages": SAID}}, 400, "input_invalid"),
        ({"json": {"model": "none", "messages": SAID}}, 404, "model_not_found"),
        ({"data": "{", "content_type": "application/json"}, 400, "json_invalid"),
        ({"data": "{}", "content_type": "text/plain"}, 415, "unsupported_media_type"),
    ],
)
def test_what_is_refused_at_the_door_is_declared(
    client: FlaskClient, declared: Declared, sent: dict[str, Any], status: int, code: str
) -> None:
    response = client.post(CHATS, headers=ACME, **sent)

    check(declared, "POST", CHATS, response)
    assert (response.status_code, response.get_json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"model": ""},
        {"model": None},
        {"messages": []},
        {"messages": "hello"},
        {"messages": [None, 3]},
        {"stream": None},
        {"stream": 1},
        {"stream": "true"},
        {"stream_options": None},
        {"stream_options": []},
        {"stream_options": {"include_usage": None, "more": 1}},
        {"stream_options": {"include_usage": 0}},
        {"never_heard_of": {"a": [1, None]}},
    ],
)
def test_a_body_is_good_where_its_schema_says_so(
    declared: Declared, change: dict[str, Any]
) -> None:
    body = {"model": MODEL, "messages": SAID, **change}
    reference = {"$ref": f"#/components/schemas/{ChatBody.__name__}"}
    whole = {**reference, "components": declared.document["components"]}
    try:
        Chat.read(body)
        good = True
    except InvalidChat:
        good = False

    assert Draft202012Validator(whole).is_valid(body) is good


def test_nothing_stands_in_for_a_chat(declared: Declared) -> None:
    """So every failure of a call is one, but for those of interviews alone."""
    codes = {code for status in (409, 422, 503) for code in told(declared, status)}
    assert {"ai_infra_maintenance", "key_conflict", "draining"} <= codes
    assert not codes & {"session_forgotten", "session_busy", "ai_input_empty", "no_text"}


def told(declared: Declared, status: int) -> set[str]:
    held = declared.answer("POST", CHATS, status)["content"]["application/json"]["schema"]
    kinds = held.get("anyOf", [held])
    errors = [each["properties"]["error"]["properties"] for each in kinds if "properties" in each]
    return {code for each in errors for code in each["code"]["enum"]}
