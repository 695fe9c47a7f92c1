"""What callers are told, and what is kept, when the model fails."""

from __future__ import annotations

import json
from typing import Any

import gevent
import pytest

from flightsvc.checklist import load_checklist
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.settings import Settings
from tests.support.service import Service
from tests.web.running import ACME, flight_id, is_problem, path

CHECKLIST = load_checklist(Settings())
MALFORMED = "AI_MODEL_OUTPUT_MALFORMED"


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "overloaded", "type": "server_error", "code": None}},
        {"code": 10_907, "message": "token limit", "sid": "x"},
        {"code": 20_303, "message": "try later", "choices": []},
    ],
    ids=lambda body: json.dumps(body)[:24],
)
def test_h24_a_failure_inside_a_200_is_never_stored(
    service: Service,
    model: ModelServerProcess,
    session: str,
    asked: dict[str, Any],
    body: dict[str, Any],
) -> None:
    model.script([{"match": {"times": 1}, "behave": {"body": body}}])

    reply = service.post(path(session), asked, headers=ACME)

    assert reply.status == 503
    members = is_problem(reply, 503, reply.json()["code"])
    assert members["flight_id"] == reply.headers["flight-id"] == flight_id(session, asked)
    state = service.get("/v1/flights/" + flight_id(session, asked), headers=ACME).json()
    assert (state["state"], state["error_code"]) == ("FAILED", members["code"])
    assert state["size"] is None


def test_after_a_failure_that_may_pass_the_model_is_asked_again(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    model.script([{"match": {"times": 1}, "behave": {"answer": "text", "text": "no idea"}}])

    failed = service.post(path(session), asked, headers=ACME)
    gevent.sleep(int(failed.headers["retry-after"]))
    replies = [service.post(path(session), asked, headers=ACME) for _ in range(2)]

    is_problem(failed, 503, MALFORMED)
    assert [reply.status for reply in replies] == [200, 200]
    assert model.stats()["calls"] == 2
    assert replies[0].headers["flight-role"] == "owner"
    assert int(replies[0].headers["flight-fence"]) > int(failed.headers["flight-fence"])


@pytest.mark.parametrize(
    ("behave", "status", "code", "retryable", "retry_after"),
    [
        ({"status": 500}, 503, "PROVIDER_UNAVAILABLE", True, None),
        ({"status": 502, "body": "<html>bad gateway"}, 503, "PROVIDER_UNAVAILABLE", True, None),
        ({"status": 429, "retry_after": 7}, 503, "PROVIDER_RATE_LIMITED", True, 7),
        ({"status": 401}, 503, "PROVIDER_AUTH_FAILED", False, None),
        ({"status": 400}, 503, "PROVIDER_REJECTED", False, None),
        ({"cut_before_answer": True}, 503, "PROVIDER_UNREACHABLE", True, None),
        ({"cut_after_bytes": 40}, 503, "PROVIDER_UNREACHABLE", True, None),
        ({"body": ""}, 503, MALFORMED, True, None),
        ({"answer": "text", "text": "I would say 80."}, 503, MALFORMED, True, None),
        ({"answer": "text", "text": '{"score": 101}'}, 503, MALFORMED, True, None),
    ],
    ids=lambda value: json.dumps(value)[:40] if isinstance(value, dict) else None,
)
def test_what_a_caller_is_told_of_a_failed_call(
    service: Service,
    model: ModelServerProcess,
    session: str,
    asked: dict[str, Any],
    behave: dict[str, Any],
    status: int,
    code: str,
    retryable: bool,
    retry_after: int | None,
) -> None:
    model.script([{"match": {}, "behave": behave}])
    secret = "the candidate's own words"

    reply = service.post(path(session), {**asked, "answer": secret}, headers=ACME)

    members = is_problem(reply, status, code)
    assert members["retryable"] is retryable
    assert members["detail"] == CHECKLIST.code(code).message_en
    assert len(reply.headers["flight-id"]) == 32
    assert reply.headers["flight-fence"].isdigit()
    if retry_after is not None:
        assert int(reply.headers["retry-after"]) == retry_after
    assert secret not in reply.body.decode()
    assert model.stats()["calls"] == 1


def test_a_silent_model_is_a_timeout(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    model.script([{"match": {}, "behave": {"never_answer": True}}])

    members = is_problem(service.post(path(session), asked, headers=ACME), 504, "AI_INFRA_TIMEOUT")
    assert members["retryable"] is True
    model.until(open_calls=0)


def test_the_log_holds_no_secrets(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    words = {"answer": "Qwertz-4711 answer", "question": "Qwertz-4711 question"}
    model.script([{"match": {"times": 1}, "behave": {"answer": "echo"}}])

    service.post(path(session), {**asked, **words}, headers=ACME)
    service.post(path(session), {**asked, **words, "extra": 1}, headers=ACME)
    service.post(path(session), asked, headers={"Authorization": "Bearer Qwertz-4711"})

    log = service.log()
    assert "Qwertz" not in log
    assert "sk-model-secret" not in log
    assert "token-acme" not in log
    assert "Traceback" not in log
