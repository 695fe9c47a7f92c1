"""An app in this process for what needs no other; the service under gunicorn for the rest."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from flightsvc.app import close_worker, create_app
from flightsvc.model_server.process import ModelServerProcess
from tests.support.service import Service
from tests.web.running import LIMIT, TOKENS, local_settings, openai


@pytest.fixture
def asked() -> dict[str, Any]:
    """A good request."""
    return {
        "question_number": 3,
        "question": "What is a fencing token?",
        "answer": "A number that rises with each lease.",
    }


@pytest.fixture
def app() -> Iterator[Flask]:
    app = create_app(local_settings(max_body_bytes=200_000))
    yield app
    close_worker(app)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServerProcess]:
    with ModelServerProcess() as model:
        yield model


@pytest.fixture
def model(model_server: ModelServerProcess) -> ModelServerProcess:
    model_server.reset()
    return model_server


@pytest.fixture(scope="session")
def service(model_server: ModelServerProcess) -> Iterator[Service]:
    env = {
        **openai(model_server),
        "FLIGHTSVC_API_TOKENS": json.dumps(TOKENS),
        "FLIGHTSVC_MAX_BODY_BYTES": str(LIMIT),
        "FLIGHTSVC_BODY_TIMEOUT_MS": "2000",
        "FLIGHTSVC_STAGES__EVALUATION__TIMEOUT_MS": "4000",
        "FLIGHTSVC_STAGES__EVALUATION__BUDGET_MS": "5000",
    }
    with Service(env, workers=4) as service:
        yield service


@pytest.fixture
def session() -> str:
    """An interview of this test's own."""
    return f"s-{time.monotonic_ns()}"
