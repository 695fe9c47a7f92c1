"""The services of the tests in this folder: settings, addresses, problems."""

from __future__ import annotations

import socket
from typing import Any

from flightsvc.interview.evaluation import EvaluationInput, flight_key
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.settings import Settings
from tests.support.data import DATA_DIR
from tests.support.service import Reply, Service

TOKENS = {"token-acme": "acme", "token-beta": "beta"}
ACME = {"Authorization": "Bearer token-acme"}
BETA = {"Authorization": "Bearer token-beta"}
MODEL = "test-model"
LIMIT = 100_000
EVALUATIONS = "/v1/interviews/s1/evaluations"


def local_settings(**values: Any) -> Settings:
    """For an app in this process: no Redis, and a simulated model that answers at once."""
    return Settings(mode="local", simulated_latency_ms=0, **{"data_dir": DATA_DIR, **values})


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


def path(session: str) -> str:
    return f"/v1/interviews/{session}/evaluations"


def flight_id(session: str, asked: dict[str, Any], tenant: str = "acme") -> str:
    given = EvaluationInput.model_validate(asked)
    return flight_key(session, given, tenant=tenant, provider="openai", model=MODEL).flight_id


def is_problem(reply: Reply, status: int, code: str) -> dict[str, Any]:
    members: dict[str, Any] = reply.json()
    assert (reply.status, members["code"]) == (status, code), members
    assert reply.headers["content-type"] == "application/problem+json"
    assert members["status"] == status
    assert b"Traceback" not in reply.body
    if status in (503, 504):
        assert int(reply.headers["retry-after"]) >= 1
    return members


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
