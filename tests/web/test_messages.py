"""Whatever a client is told went wrong, it has words for its user in English and in Chinese."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Blueprint, Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from flightsvc import errors
from flightsvc.app import close_worker, create_app
from flightsvc.checklist import UNKNOWN, load_checklist
from flightsvc.errors import (
    CallFailed,
    CheckedFailure,
    FailureType,
    FallbackAnswer,
    FlightSvcError,
    RecordsError,
)
from flightsvc.settings import Settings
from flightsvc.web.routes import add_route
from tests.web.running import EVALUATIONS, local_settings

CHECKLIST = load_checklist(Settings())
LANGUAGES = ("en", "zh")
#: codes that calls fail with and that are none of the list, and whose words are told
UNLISTED = {"RESULT_TOO_LARGE": "RESULT_REJECTED", "CALL_TIMEOUT": "AI_INFRA_TIMEOUT"}


def classes() -> list[type[FlightSvcError]]:
    found = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    need_words = (CallFailed, CheckedFailure, FallbackAnswer)
    return [kind for kind in found if issubclass(kind, FlightSvcError) and kind not in need_words]


def call_failed(code: str) -> CallFailed:
    return CallFailed(failure_type=FailureType.PROVIDER, code=code, retryable=True, status=503)


class Raising:
    """A route of the service that fails as the test says."""

    error: Exception = ValueError()

    def view(self, _service: object) -> Any:
        raise self.error


@pytest.fixture
def raising() -> Raising:
    return Raising()


@pytest.fixture
def app(raising: Raising) -> Iterator[Flask]:
    app = create_app(local_settings(operator_tokens={"token-ada": "ada"}))
    blueprint = Blueprint("raising", __name__)
    add_route(blueprint, "/raising", "raising", raising.view, "GET")
    app.register_blueprint(blueprint)
    yield app
    close_worker(app)


def says(response: TestResponse, language: str, code: str) -> dict[str, Any]:
    """It has the code's words in this language."""
    members: dict[str, Any] = json.loads(response.data)
    assert members["message"] == CHECKLIST.code(code).message(language), members
    assert response.headers["Content-Language"] == language
    assert response.headers["Vary"] == "Accept-Language"
    return members


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", classes())
def test_each_error_of_ours(
    client: FlaskClient, raising: Raising, kind: type[FlightSvcError], language: str
) -> None:
    raising.error = kind()
    response = client.get("/raising", headers={"Accept-Language": language})
    says(response, language, CHECKLIST.classify(kind()).name)


def test_what_a_database_says_is_for_the_log(
    client: FlaskClient, raising: Raising, caplog: pytest.LogCaptureFixture
) -> None:
    inside = "The PostgreSQL database people on db.inside:5432 is out of reach."
    raising.error = RecordsError(inside, kind="unreachable", retry_after_s=5)
    response = client.get("/raising")
    members = says(response, "en", "RECORDS_UNAVAILABLE")
    assert (response.status_code, members["detail"]) == (503, members["message"])
    assert "db.inside" not in response.text
    assert inside in caplog.text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("code", [*CHECKLIST.codes, *UNLISTED])
def test_each_code_that_a_call_fails_with(
    client: FlaskClient, raising: Raising, code: str, language: str
) -> None:
    """Its detail says it too. What users are not meant to see is told as an unknown failure."""
    raising.error = call_failed(code)
    listed = UNLISTED.get(code, code)
    seen = listed if CHECKLIST.code(listed).user_sees else UNKNOWN

    members = says(client.get("/raising", headers={"Accept-Language": language}), language, seen)
    assert (members["code"], members["detail"]) == (code, members["message"])


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "REQUEST_INVALID"),
        ("DELETE", EVALUATIONS, 405, "REQUEST_INVALID"),
        ("POST", EVALUATIONS, 415, "REQUEST_INVALID"),
        ("GET", "/v1/modules", 401, "REQUEST_INVALID"),
        ("GET", "/raising", 500, UNKNOWN),
    ],
)
def test_what_the_framework_and_nobody_foresaw(
    client: FlaskClient, method: str, path: str, status: int, code: str, language: str
) -> None:
    response = client.open(path, method=method, headers={"Accept-Language": language})
    assert response.status_code == status
    says(response, language, code)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_fault_in_the_request_keeps_its_own_words_for_the_programmer(
    client: FlaskClient, language: str
) -> None:
    headers = {"Accept-Language": language}
    response = client.post(EVALUATIONS, json={"question_number": 1}, headers=headers)
    members = says(response, language, "REQUEST_INVALID")
    assert members["code"] == "INPUT_INVALID"
    assert members["detail"].startswith("question: ")
    assert "fallback" not in members


def test_a_process_that_stops_still_has_its_words(app: Flask, client: FlaskClient) -> None:
    client.get("/nowhere")
    close_worker(app)
    response = client.post(
        EVALUATIONS,
        json={"question_number": 1, "question": "Why?", "answer": "So."},
        headers={"Accept-Language": "zh"},
    )
    members = says(response, "zh", "DRAINING")
    assert response.status_code == 503
    assert members["detail"] == members["message"]


def test_another_language_is_told_in_english(client: FlaskClient) -> None:
    says(client.get("/nowhere", headers={"Accept-Language": "fr"}), "en", "REQUEST_INVALID")


def test_a_code_that_the_list_hides_is_told_as_an_unknown_one(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("[codes.DRAINING]\nuser_sees = false\n")
    app = create_app(local_settings(checklist_file=str(own)))
    client = app.test_client()
    client.get("/nowhere")
    close_worker(app)
    asked = {"question_number": 1, "question": "Why?", "answer": "So."}
    members = says(client.post(EVALUATIONS, json=asked), "en", UNKNOWN)
    assert members["code"] == "DRAINING"
