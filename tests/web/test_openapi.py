"""`/openapi.json` says what there is: every route, every answer, at whatever address."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from openapi_spec_validator import validate
from urllib3 import encode_multipart_formdata
from werkzeug.test import TestResponse

from flightsvc.app import FlightSvc, close_worker, create_app
from flightsvc.checklist import load_checklist
from flightsvc.flight.result import FlightResult
from flightsvc.interview import demeanor, evaluation, extraction, follow_up
from flightsvc.interview.demeanor import DemeanorAnswer
from flightsvc.interview.evaluation import EvaluationAnswer
from flightsvc.interview.standins import SMALLER, TRUNCATED, marked, spoken, stale
from flightsvc.settings import Settings
from flightsvc.web import (
    flights_blueprint,
    health_blueprint,
    interview_blueprint,
    modules_blueprint,
    openapi_blueprint,
)
from flightsvc.web.openapi_errors import BY_NAME, OF_NO_CALL, STANDS_IN
from flightsvc.web.render import render_result
from flightsvc.web.routes import operations_of
from tests.checklist.test_classify import classes, codes_in_the_source
from tests.files.samples import picture, text_pdf
from tests.processes import ROOT
from tests.web.declared import Declared
from tests.web.running import ACME, TOKENS, local_settings

CHECKLIST = load_checklist(Settings())
ADA = {"Authorization": "Bearer token-ada"}
SESSION = "/v1/interviews/{session_id}"
STAGES = {
    "evaluations": evaluation,
    "follow-ups": follow_up,
    "extractions": extraction,
    "demeanor": demeanor,
}


@pytest.fixture(scope="module")
def app() -> Iterator[Flask]:
    app = create_app(local_settings(operator_tokens={"token-ada": "ada"}, api_tokens=TOKENS))
    yield app
    close_worker(app)


@pytest.fixture(scope="module")
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture(scope="module")
def declared(client: FlaskClient) -> Declared:
    return document(client)


def document(client: FlaskClient, path: str = "/openapi.json", **options: Any) -> Declared:
    response = client.get(path, **options)
    assert response.status_code == 200, response.text
    return Declared(json.loads(response.data))


def host(tenant_of: Any = None) -> tuple[Flask, FlaskClient]:
    """An app with a page of its own and everything of ours below a prefix."""
    app = Flask("host")
    FlightSvc(app, local_settings(), tenant_of=tenant_of)
    blueprints = (
        interview_blueprint(),
        flights_blueprint(),
        health_blueprint(),
        modules_blueprint(),
        openapi_blueprint(),
    )
    for blueprint in blueprints:
        app.register_blueprint(blueprint, url_prefix="/ai")

    @app.get("/crash")
    def crash() -> str:
        raise ZeroDivisionError

    return app, app.test_client()


def test_the_document_is_openapi(declared: Declared) -> None:
    validate(declared.document)
    assert declared.document["openapi"].startswith("3.1.")


def test_it_has_every_route_with_its_methods(
    app: Flask, client: FlaskClient, declared: Declared
) -> None:
    served = set()
    for rule in app.url_map.iter_rules():
        address = re.sub(r"<\w+>", "x", rule.rule)
        allowed = client.options(address).headers["Allow"].split(", ")
        assert {*operations_of(app.view_functions[rule.endpoint])} == {*allowed} - {
            "HEAD",
            "OPTIONS",
        }, f"{rule.rule}: say in add_route(operations=…) what each method is"
        path = re.sub(r"<(\w+)>", r"{\1}", rule.rule)
        served |= {(method, path) for method in allowed if method not in ("HEAD", "OPTIONS")}

    assert {*declared.operations} == served


def test_what_a_route_leads_to_is_there(declared: Declared) -> None:
    names = [each["operationId"] for each in declared.operations.values()]
    links = re.findall(r'"operationId": "([^"]+)", "parameters"', json.dumps(declared.document))

    assert len(names) == len(set(names))
    assert {*links} <= {*names}
    assert "flights_flight_get" in links


@pytest.mark.parametrize("address", ["evaluations", "follow-ups", "extractions", "demeanor"])
def test_good_answers_are_declared(
    client: FlaskClient, declared: Declared, address: str
) -> None:
    path = f"{SESSION}/{address}"

    def ask(**options: Any) -> TestResponse:
        headers = {**ACME, **options.pop("headers", {})}
        body, kind = BODIES[address]
        response = client.post(
            f"/v1/interviews/s-{address}/{address}",
            data=body,
            content_type=kind,
            headers=headers,
            **options,
        )
        check(declared, "POST", path, response)
        return response

    assert ask().status_code == 200
    streamed = ask(query_string={"progress": "1"})
    assert streamed.mimetype == "text/event-stream"
    assert b"event: stored" in streamed.data
    assert ask(headers={"Prefer": "respond-async"}).status_code in (200, 202)

    flight = streamed.headers["Flight-Id"]
    fetched = client.get(f"/v1/interviews/s-{address}/{address}/{flight}", headers=ACME)
    check(declared, "GET", path + "/{flight_id}", fetched)
    assert fetched.status_code == 200
    for rest in ("", "/report"):
        shown = client.get(f"/v1/interviews/s-{address}{rest}", headers=ACME)
        check(declared, "GET", SESSION + rest, shown)
        assert shown.status_code == 200
    gone = client.delete(f"/v1/interviews/s-{address}", headers=ACME)
    check(declared, "DELETE", SESSION, gone)
    assert gone.status_code == 204


def form(content: bytes, **fields: str) -> tuple[bytes, str]:
    name = ("anything", content, "application/octet-stream")
    return encode_multipart_formdata({**fields, "file": name})


NO_PDF = form(b"no PDF")
QUESTION = {"question_number": 1, "question": "What is a B-tree?", "answer": "A balanced tree."}
FURTHER = {
    "current_question": "What is a B-tree?",
    "answer": "A balanced tree.",
    "follow_up_count": 0,
    "max_follow_up": 2,
}
BODIES: dict[str, tuple[bytes, str]] = {
    "evaluations": (json.dumps(QUESTION).encode(), "application/json"),
    "follow-ups": (json.dumps(FURTHER).encode(), "application/json"),
    "extractions": form(text_pdf(), position="engineer"),
    "demeanor": form(picture("JPEG")),
}


@pytest.mark.parametrize("event", ["fallback", "error"])
def test_other_ends_of_a_stream_are_declared(
    client: FlaskClient, declared: Declared, event: str
) -> None:
    address = {"fallback": "evaluations", "error": "extractions"}[event]
    sent: dict[str, Any] = {"json": {**QUESTION, "answer": " "}}
    if event == "error":
        sent = {"data": NO_PDF[0], "content_type": NO_PDF[1]}

    response = client.post(
        f"/v1/interviews/ends/{address}?progress=1", headers=ACME, **sent
    )

    check(declared, "POST", f"{SESSION}/{address}", response)
    assert f"event: {event}\n" in response.text


@pytest.mark.parametrize(
    ("method", "path", "at", "sent", "status"),
    [
        ("GET", "/healthz", "/healthz", {}, 200),
        ("GET", "/readyz", "/readyz", {}, 200),
        ("GET", "/openapi.json", "/openapi.json", {}, 200),
        ("GET", "/docs", "/docs", {}, 200),
        ("GET", "/v1/modules", "/v1/modules", {"headers": ADA}, 200),
        ("GET", "/v1/modules", "/v1/modules", {"headers": ACME}, 403),
        ("GET", "/v1/modules", "/v1/modules", {}, 401),
        ("GET", "/v1/modules/{module}", "/v1/modules/nothing", {"headers": ADA}, 404),
        ("PUT", "/v1/modules/{module}", "/v1/modules/chat", {"headers": ADA, "json": {}}, 503),
        ("GET", "/v1/flights/{flight_id}", "/v1/flights/x", {"headers": ACME}, 404),
        ("DELETE", "/v1/flights/{flight_id}", f"/v1/flights/{'0' * 32}", {"headers": ACME}, 404),
        ("GET", SESSION, "/v1/interviews/none", {"headers": ACME}, 404),
        ("GET", SESSION, "/v1/interviews/a b", {"headers": ACME}, 422),
        ("GET", SESSION, "/v1/interviews//evaluations", {"headers": ACME}, 404),
        ("GET", SESSION, "/v1/interviews/none", {"headers": ADA}, 403),
        ("POST", f"{SESSION}/evaluations", "/v1/interviews/s/evaluations", {}, 401),
        (
            "POST",
            f"{SESSION}/evaluations",
            "/v1/interviews/s/evaluations",
            {"headers": ACME, "data": "{", "content_type": "application/json"},
            400,
        ),
        (
            "POST",
            f"{SESSION}/extractions",
            "/v1/interviews/s/extractions",
            {"headers": ACME, "data": NO_PDF[0], "content_type": NO_PDF[1]},
            415,
        ),
    ],
)
def test_other_answers_are_declared(
    client: FlaskClient,
    declared: Declared,
    method: str,
    path: str,
    at: str,
    sent: dict[str, Any],
    status: int,
) -> None:
    response = client.open(at, method=method, **sent)

    assert response.status_code == status, response.text
    check(declared, method, path, response)


@pytest.mark.parametrize("address", STAGES)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_stand_in_is_declared(
    app: Flask, declared: Declared, address: str, language: str
) -> None:
    """Whatever the checklist lets stand in for an answer, as it is really made and sent."""
    answers: dict[str, dict[str, Any]] = {
        "evaluations": {
            "score": 80, "logic_ok": True, "missing_points": [], "feedback": "Good.",
            "follow_up_needed": False, "follow_up_question": None, "simulated": False,
        },
        "follow-ups": {"needed": False, "question": None, "reason": "It is all said.",
                       "simulated": False},
        "extractions": {"questions": ["Why?"], "suggestions": [], "resume_score": 50,
                        "interview_type": "backend", "simulated": False},
        "demeanor": dict.fromkeys(
            ("panic_level", "seriousness_level", "emoticon_handling", "composite_score"), 50
        ) | {"simulated": True},
    }  # fmt: skip
    answer, seen = answers[address], set()
    for code in CHECKLIST:
        action = code.fallback.action
        value = spoken(code, STAGES[address].STAGE)
        if action == "last_good":
            value = stale(code, Recalled(answer))
        elif action == "smaller_model":
            value = marked(code, answer, SMALLER)
        elif action == "truncate":
            value = marked(code, answer, TRUNCATED, tell=True)
        if value is not None:
            seen.add(action)
            result = FlightResult.stand_in(value, action, "0" * 32, 7)
            with app.test_request_context(headers={"Accept-Language": language}):
                response = render_result(result)
            check(declared, "POST", f"{SESSION}/{address}", response)

    assert seen == {*STANDS_IN, "last_good", "smaller_model", "truncate"}


class Recalled:
    age_s = 12.34

    def __init__(self, value: Any) -> None:
        self.value = value


def test_every_code_of_a_failed_call_is_declared(declared: Declared) -> None:
    """Codes that some line of ours gives a failure, beside those that rules lead to."""
    by_class = {kind.default_code for kind in classes().values()} - {"UNEXPECTED"}
    stages = "".join(path.read_text() for path in (ROOT / "flightsvc/interview").glob("*.py"))
    named = codes_in_the_source() | {*re.findall(r'CheckedFailure\("(\w+)"', stages)}
    named = (named | {"RETRY_EXHAUSTED"}) & {*CHECKLIST.codes}
    ruled = {rule.to for rule in CHECKLIST.classifier.rules}

    assert "AI_INPUT_EMPTY" in named
    assert named - by_class - ruled - OF_NO_CALL <= {*BY_NAME}
    assert {*BY_NAME} <= {*CHECKLIST.codes}


def test_each_body_of_a_request_is_what_validates(declared: Declared) -> None:
    for address, schema in (
        ("evaluations", "EvaluationInput"),
        ("follow-ups", "FollowUpInput"),
    ):
        body = declared.operations["POST", f"{SESSION}/{address}"]["requestBody"]
        found = body["content"]["application/json"]
        assert found["schema"]["$ref"].endswith(f"/{schema}")
        declared.fits(found["examples"]["good"]["value"], found["schema"])
    fields = declared.operations["POST", f"{SESSION}/extractions"]["requestBody"]["content"]
    schema_of = fields["multipart/form-data"]["schema"]
    assert {*schema_of["properties"]} == {"file", *extraction.ExtractionForm.model_fields}


def test_fields_have_their_texts(declared: Declared) -> None:
    schemas = declared.document["components"]["schemas"]

    for model in (EvaluationAnswer, DemeanorAnswer):
        fields = schemas[model.__name__]["properties"]
        assert {*fields} == {*model.model_fields}
        assert all(field["description"] for field in fields.values()), fields


def test_whole_numbers_may_have_a_point(client: FlaskClient) -> None:
    """To JSON Schema 3.0 is an integer, and some clients write it so."""
    asked = [{**QUESTION, "question_number": number} for number in (3, 3.0)]

    replies = [
        client.post("/v1/interviews/whole/evaluations", json=each, headers=ACME) for each in asked
    ]
    half = client.post(
        "/v1/interviews/whole/evaluations", json={**QUESTION, "question_number": 3.5}, headers=ACME
    )

    assert [reply.status_code for reply in replies] == [200, 200]
    assert replies[0].headers["Flight-Id"] == replies[1].headers["Flight-Id"]
    assert half.status_code == 422


def test_below_a_prefix_the_addresses_are_those_that_work() -> None:
    app, client = host()

    declared = document(client, "/ai/openapi.json")

    validate(declared.document)
    rules = {rule.rule for rule in app.url_map.iter_rules() if rule.rule.startswith("/ai/")}
    assert {*declared.document["paths"]} == {re.sub(r"<(\w+)>", r"{\1}", rule) for rule in rules}
    assert declared.document["servers"] == [{"url": "/"}]
    asked = client.post("/ai/v1/interviews/s/evaluations", json=QUESTION)
    check(declared, "POST", f"/ai{SESSION}/evaluations", asked)
    # nobody signs in here, and there are no operators
    assert "security" not in declared.operations["POST", f"/ai{SESSION}/evaluations"]
    none = client.get("/ai/v1/modules")
    assert none.status_code == 404
    check(declared, "GET", "/ai/v1/modules", none)
    close_worker(app)


def test_behind_a_server_that_takes_a_part_of_the_address() -> None:
    app, client = host()

    declared = document(
        client, "/ai/openapi.json", environ_overrides={"SCRIPT_NAME": "/behind"}
    )

    assert declared.document["servers"] == [{"url": "/behind"}]
    page = client.get("/ai/docs", environ_overrides={"SCRIPT_NAME": "/behind"})
    assert "/behind/ai/v1/interviews/{session_id}" in page.text
    close_worker(app)


def test_mounted_twice_and_below_a_variable() -> None:
    app = Flask("host")
    FlightSvc(app, local_settings())
    app.register_blueprint(interview_blueprint(), url_prefix="/<company>/ai")
    app.register_blueprint(interview_blueprint("second"), url_prefix="/second")
    app.register_blueprint(openapi_blueprint())

    declared = document(app.test_client())

    validate(declared.document)
    operation = declared.operations["POST", "/{company}/ai" + SESSION + "/evaluations"]
    assert [each["name"] for each in operation["parameters"][:2]] == ["company", "session_id"]
    assert ("POST", "/second" + SESSION + "/evaluations") in declared.operations
    close_worker(app)


def test_the_hosts_own_sign_in() -> None:
    app, client = host(tenant_of=lambda request: request.headers.get("X-Company"))

    declared = document(client, "/ai/openapi.json")
    refused = client.post("/ai/v1/interviews/s/evaluations", json=QUESTION)

    assert refused.status_code == 401
    check(declared, "POST", f"/ai{SESSION}/evaluations", refused)
    assert "403" not in declared.operations["POST", f"/ai{SESSION}/evaluations"]["responses"]
    close_worker(app)


def test_it_is_told_of_also_where_nothing_can_be_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("_FLIGHTSVC_EMBEDDED_URL", raising=False)
    client = create_app(local_settings().model_copy(update={"mode": "hybrid"})).test_client()

    declared = document(client)
    ready = client.get("/readyz")

    assert ready.status_code == 503
    check(declared, "GET", "/readyz", ready)
    members = json.loads(ready.data)
    assert members["code"] == "SETTINGS_INVALID"
    assert "FLIGHTSVC_REDIS_URL" in members["detail"]
    assert client.get("/healthz").status_code == 200


def check(declared: Declared, method: str, path: str, response: Any) -> None:
    """See :meth:`Declared.check`."""
    headers = {name.title(): value for name, value in response.headers.items()}
    headers |= dict(response.headers)
    declared.check(method, path, response.status_code, headers, response.get_data())
