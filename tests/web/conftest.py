"""An app in this process for what needs no other; the service under gunicorn for the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from flightsvc.app import close_worker, create_app
from flightsvc.settings import Settings

EVALUATIONS = "/v1/interviews/s1/evaluations"


def local_settings(**values: Any) -> Settings:
    """No Redis, and a simulated model that answers at once."""
    return Settings(mode="local", simulated_latency_ms=0, **values)


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
