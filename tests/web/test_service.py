"""The service whole: gunicorn with four workers, an embedded Valkey, a model server."""

from __future__ import annotations

import json
import socket
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import gevent
import pytest
from gevent.pool import Pool

from flightsvc.interview.evaluation import EvaluationInput, flight_key
from flightsvc.model_server.process import ModelServerProcess
from tests.support.service import Reply, Service

TOKENS = {"token-acme": "acme", "token-beta": "beta"}
ACME = {"Authorization": "Bearer token-acme"}
BETA = {"Authorization": "Bearer token-beta"}
MODEL = "test-model"
MALFORMED = "AI_MODEL_OUTPUT_MALFORMED"
LIMIT = 100_000


def openai(model: ModelServerProcess) -> dict[str, str]:
    """Settings for a service that asks this model, once a call."""
    return {
        "FLIGHTSVC_PROVIDER": "openai",
        "FLIGHTSVC_OPENAI_BASE_URL": model.base_url,
        "FLIGHTSVC_OPENAI_API_KEY": "sk-model-secret",
        "FLIGHTSVC_OPENAI_MODEL": MODEL,
        "FLIGHTSVC_STAGES__EVALUATION__RETRY_DELAYS_MS": "[]",
        "FLIGHTSVC_BREAKER_FAILURES": "1000",
    }


@pytest.fixture(scope="module")
def model_server() -> Iterator[ModelServerProcess]:
    with ModelServerProcess() as model:
        yield model


@pytest.fixture
def model(model_server: ModelServerProcess) -> ModelServerProcess:
    model_server.reset()
    return model_server


@pytest.fixture(scope="module")
def service(model_server: ModelServerProcess) -> Iterator[Service]:
    env = {
        **openai(model_server),
        "FLIGHTSVC_API_TOKENS": json.dumps(TOKENS),
        "FLIGHTSVC_MAX_BODY_BYTES": str(LIMIT),
        "FLIGHTSVC_STAGES__EVALUATION__TIMEOUT_MS": "4000",
        "FLIGHTSVC_STAGES__EVALUATION__BUDGET_MS": "5000",
    }
    with Service(env, workers=4) as service:
        yield service


@pytest.fixture
def session(request: pytest.FixtureRequest) -> str:
    """An interview of this test's own."""
    return f"s-{time.monotonic_ns()}"


def path(session: str) -> str:
    return f"/v1/interviews/{session}/evaluations"


def flight_id(session: str, asked: dict[str, Any], tenant: str = "acme") -> str:
    given = EvaluationInput.model_validate(asked)
    return flight_key(session, given, tenant=tenant, provider="openai", model=MODEL).flight_id


def roles(replies: list[Reply]) -> Counter[str]:
    return Counter(reply.headers["flight-role"] for reply in replies)


def is_problem(reply: Reply, status: int, code: str) -> dict[str, Any]:
    members: dict[str, Any] = reply.json()
    assert (reply.status, members["code"]) == (status, code), members
    assert reply.headers["content-type"] == "application/problem+json"
    assert members["status"] == status
    assert b"Traceback" not in reply.body
    if status in (503, 504):
        assert int(reply.headers["retry-after"]) >= 1
    return members


def test_1000_requests_with_one_key_are_one_model_call(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    model.script([{"match": {}, "behave": {"latency_ms": 1_000}}])

    pool = Pool(1_000)
    post = lambda _: service.post(path(session), asked, headers=ACME)  # noqa: E731
    replies: list[Reply] = pool.map(post, range(1_000))

    assert Counter(reply.status for reply in replies) == {200: 1_000}
    assert len({reply.body for reply in replies}) == 1
    assert len({reply.headers["flight-fence"] for reply in replies}) == 1
    assert {reply.headers["flight-id"] for reply in replies} == {flight_id(session, asked)}
    assert model.stats()["calls"] == 1
    assert roles(replies)["owner"] == 1
    assert roles(replies).keys() <= {"owner", "follower", "replay", "l1"}


def test_different_keys_are_as_many_calls_as_keys(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    model.script([{"match": {}, "behave": {"latency_ms": 300}}])
    bodies = [{**asked, "answer": f"Answer number {number % 40}."} for number in range(400)]

    post = lambda body: service.post(path(session), body, headers=ACME)  # noqa: E731
    replies: list[Reply] = Pool(400).map(post, bodies)

    assert Counter(reply.status for reply in replies) == {200: 400}
    stats = model.stats()
    assert stats["calls"] == 40
    assert set(stats["by_key"].values()) == {1}
    assert len({reply.headers["flight-id"] for reply in replies}) == 40
    assert roles(replies)["owner"] == 40


def test_h07_the_first_caller_hangs_up(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    model.script([{"match": {}, "behave": {"gate": "answer"}}])
    first = send_raw(service, path(session), json.dumps(asked).encode())
    model.until(open_calls=1)
    others = [gevent.spawn(service.post, path(session), asked, headers=ACME) for _ in range(8)]
    where = "/v1/flights/" + flight_id(session, asked)
    deadline = time.monotonic() + 2
    while service.get(where, headers=ACME).json()["followers"] == 0:
        if time.monotonic() > deadline:
            break  # all eight may have met the first one's worker: they wait there as well
        gevent.sleep(0.02)

    first.close()
    assert model.stats()["open_calls"] == 1
    model.open_gate("answer")

    replies: list[Reply] = [other.get() for other in others]
    assert [reply.status for reply in replies] == [200] * 8
    stats = model.stats()
    assert (stats["calls"], stats["cancelled"]) == (1, 0)
    later = service.post(path(session), asked, headers=ACME)
    assert later.headers["flight-role"] in ("replay", "l1")
    assert later.body == replies[0].body


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
        ({"status": 401}, 503, "PROVIDER_REJECTED", False, None),
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

    members = is_problem(service.post(path(session), asked, headers=ACME), 504, "PROVIDER_TIMEOUT")
    assert members["retryable"] is True
    model.until(open_calls=0)


def test_h21_the_same_question_of_two_tenants(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    model.script([{"match": {}, "behave": {"latency_ms": 300}}])

    at_once = [
        gevent.spawn(service.post, path(session), asked, headers=headers)
        for headers in (ACME, BETA) * 10
    ]
    replies: list[Reply] = [each.get() for each in at_once]
    later = [service.post(path(session), asked, headers=headers) for headers in (ACME, BETA)]

    assert model.stats()["calls"] == 2
    assert {reply.status for reply in replies + later} == {200}
    acme = {reply.headers["flight-id"] for reply in [*replies[0::2], later[0]]}
    beta = {reply.headers["flight-id"] for reply in [*replies[1::2], later[1]]}
    assert acme == {flight_id(session, asked, "acme")}
    assert beta == {flight_id(session, asked, "beta")}


def test_h21_nothing_in_a_request_imitates_a_tenant(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    service.post(path(session), asked, headers=BETA)

    for name, value in [("tenant", "beta"), ("T", "beta"), ("variant", ""), ("key", "x")]:
        reply = service.post(path(session), {**asked, name: value}, headers=ACME)
        is_problem(reply, 422, "INPUT_INVALID")
    headers = {**ACME, "X-Tenant": "beta", "Tenant": "beta", "Idempotency-Key": "beta"}
    assert service.post(path(session), asked, headers=headers).headers["flight-role"] == "owner"
    reply = service.post(path("beta:" + session), asked, headers=ACME)
    assert reply.headers["flight-role"] == "owner"
    assert model.stats()["calls"] == 3


def test_a_flight_shows_itself_to_its_tenant_only(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    model.script([{"match": {}, "behave": {"gate": "answer"}}])
    asking = gevent.spawn(service.post, path(session), asked, headers=ACME)
    model.until(open_calls=1)
    where = "/v1/flights/" + flight_id(session, asked)

    running = service.get(where, headers=ACME).json()
    model.open_gate("answer")
    answered: Reply = asking.get()
    done = service.get(where, headers=ACME).json()

    assert (running["state"], running["stage"]) == ("RUNNING", "evaluation")
    assert running["ownerships"] == 1
    assert running["age_ms"] >= 0
    assert (done["state"], done["size"]) == ("SUCCEEDED", len(answered.body))
    assert str(done["fence"]) == answered.headers["flight-fence"]
    is_problem(service.get(where, headers=BETA), 404, "NOT_FOUND")
    is_problem(service.get(where), 401, "UNAUTHENTICATED")
    assert asked["answer"] not in json.dumps([running, done])


def send_raw(service: Service, where: str, body: bytes, *, head: bytes = b"") -> socket.socket:
    """A request by hand; by default a whole one."""
    port = int(service.url.rpartition(":")[2])
    sock = socket.create_connection(("127.0.0.1", port), timeout=30)
    head = head or b"Content-Length: %d\r\n" % len(body)
    sock.sendall(
        b"POST %b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer token-acme\r\n"
        b"Content-Type: application/json\r\n%b\r\n%b" % (where.encode(), head, body)
    )
    return sock


def status_line(sock: socket.socket) -> bytes:
    with sock, sock.makefile("rb") as reader:
        return reader.readline()


def test_h38_a_chunked_body_over_the_limit(
    service: Service, model: ModelServerProcess, session: str
) -> None:
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    sock = send_raw(service, path(session), chunk * 6, head=b"Transfer-Encoding: chunked\r\n")
    gevent.sleep(0)
    sock.sendall(chunk)  # the last byte of the limit and one more; the end never comes

    assert status_line(sock).startswith(b"HTTP/1.1 413 ")
    assert model.stats()["calls"] == 0


def test_h38_a_length_over_the_limit_is_refused_before_the_body_comes(
    service: Service, model: ModelServerProcess, session: str
) -> None:
    sock = send_raw(service, path(session), b"", head=b"Content-Length: 100000000000\r\n")

    assert status_line(sock).startswith(b"HTTP/1.1 413 ")
    assert model.stats()["calls"] == 0


def test_a_chunked_body_within_the_limit_is_read(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    body = json.dumps(asked).encode().ljust(LIMIT)
    pieces = [body[at : at + 999] for at in range(0, len(body), 999)]
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)

    sock = send_raw(
        service,
        path(session),
        chunked + b"0\r\n\r\n",
        head=b"Transfer-Encoding: chunked\r\n",
    )

    assert status_line(sock).startswith(b"HTTP/1.1 200 ")


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


def test_the_probes_answer_while_all_waiters_are_taken(
    model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    model.script([{"match": {}, "behave": {"gate": "answer"}}])
    env = {**openai(model), "FLIGHTSVC_MAX_WAITERS": "5", "FLIGHTSVC_WORKER_CONNECTIONS": "10"}
    with Service(env, workers=1) as service:
        post = lambda: service.post(path(session), asked)  # noqa: E731
        waiting = [gevent.spawn(post) for _ in range(6)]
        refused: Reply = gevent.wait(waiting, count=1, timeout=20)[0].get()

        is_problem(refused, 503, "TOO_MANY_WAITERS")
        assert service.get("/healthz").status == 200
        assert service.get("/readyz").json() == {"status": "ready", "redis": "ok"}
        model.open_gate("answer")
        replies: list[Reply] = [each.get() for each in waiting]

    assert sorted(reply.status for reply in replies) == [200] * 5 + [503]
    assert model.stats()["calls"] == 1


@pytest.mark.parametrize("mode", ["hybrid", "distributed"])
def test_without_redis(
    model: ModelServerProcess, session: str, asked: dict[str, Any], mode: str
) -> None:
    env = {
        **openai(model),
        "FLIGHTSVC_REDIS_URL": "unix:///nowhere/redis.sock",
        "FLIGHTSVC_MODE": mode,
    }
    service = Service(env, workers=1)
    try:
        service.start(probe="/healthz")
        ready = service.get("/readyz")
        reply = service.post(path(session), asked)
        shown = service.get("/v1/flights/" + "0" * 32)
    finally:
        service.close()

    assert ready.json()["redis"] == "degraded"
    is_problem(shown, 503, "COORDINATION_UNAVAILABLE")
    if mode == "hybrid":
        assert (ready.status, ready.json()["status"]) == (200, "ready")
        assert (reply.status, reply.headers["flight-role"]) == (200, "local")
    else:
        assert (ready.status, ready.json()["status"]) == (503, "not_ready")
        assert int(ready.headers["retry-after"]) >= 1
        is_problem(reply, 503, "COORDINATION_UNAVAILABLE")
        assert model.stats()["calls"] == 0
