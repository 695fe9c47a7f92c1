"""Files for workflows: uploaded within the attempt, out of its time."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

import gevent
import pytest
import urllib3

from flightsvc.errors import (
    AnswerInvalid,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderUnreachable,
)
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.providers import ModelFile, ModelRequest, Provider
from tests.providers.failing import KEY, SECRET, failure

Ask = Callable[..., ModelRequest]
Make = Callable[..., Provider]

CONTENT = bytes(range(256)) * 40 + b"\r\n--\r\n\r\r\n\n"
PDF = ModelFile("resume.pdf", "application/pdf", CONTENT)
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def asked(ask: Ask) -> ModelRequest:
    return ask(stage="extraction", parameters={"AGENT_USER_INPUT": "x"}, file=PDF)


def test_the_workflow_gets_the_address_of_the_very_bytes(
    server: ModelServerProcess, xingchen: Make, asked: ModelRequest
) -> None:
    address = f'"USER_FILE":"https://files.example/{DIGEST}.pdf"'
    server.script(
        {
            "rules": [
                {
                    "name": "upload",
                    "match": {"kind": "upload", "bearer": f"{KEY}:{SECRET}"},
                    "behave": {},
                },
                {"name": "run", "match": {"kind": "workflow", "body_contains": address}},
            ],
            "default": {"status": 418},
        }
    )
    assert xingchen().complete(asked, 10).text
    stats = server.stats()
    assert stats["by_rule"] == {"upload": 1, "run": 1}
    assert (stats["calls"], stats["uploads"], stats["connections"]) == (1, 1, 1)


@pytest.mark.parametrize("name", ['a".pdf', "../x", "履历.pdf", "a\r\nX: 1", "", "x" * 300])
def test_h40_a_name_is_data_only(
    server: ModelServerProcess, xingchen: Make, ask: Ask, name: str
) -> None:
    file = ModelFile(name, "application/pdf", CONTENT)
    rule = {"match": {"kind": "workflow", "body_contains": f"files.example/{DIGEST}"}}
    server.script([{"match": {"kind": "upload"}}, rule, {"behave": {"status": 418}}])
    assert xingchen().complete(ask(stage="extraction", file=file), 10).text


def test_no_content_is_no_upload(server: ModelServerProcess, xingchen: Make, ask: Ask) -> None:
    file = ModelFile("resume.pdf", "application/pdf", b"")
    xingchen().complete(ask(stage="extraction", file=file), 10)
    assert server.stats()["uploads"] == 0


@pytest.mark.parametrize(
    ("behave", "kind"),
    [
        ({"code": 20369}, ProviderUnavailable),
        ({"code": 20902}, ProviderRateLimited),
        ({"code": 23601}, ProviderRejected),
        ({"status": 401}, ProviderRejected),
        ({"status": 503}, ProviderUnavailable),
        ({"cut_before_answer": True}, ProviderUnreachable),
        ({"cut_after_bytes": 10}, ProviderUnreachable),
        ({"body": {"code": 0}}, AnswerInvalid),
        ({"body": {"code": 0, "data": {"url": ""}}}, AnswerInvalid),
        ({"body": {"code": 0, "data": {"url": "https://x/\n"}}}, AnswerInvalid),
        ({"body": {"code": 0, "data": {"url": "x" * 5_000}}}, AnswerInvalid),
        ({"body": "[]"}, AnswerInvalid),
    ],
)
def test_an_upload_that_fails_fails_the_attempt(
    server: ModelServerProcess,
    xingchen: Make,
    asked: ModelRequest,
    behave: dict[str, Any],
    kind: type[ProviderError],
) -> None:
    server.script([{"match": {"kind": "upload"}, "behave": behave}])
    assert type(failure(xingchen(), asked)) is kind
    stats = server.stats()
    assert (stats["uploads"], stats["calls"]) == (1, 0)


def test_upload_and_workflow_share_one_time(
    server: ModelServerProcess, xingchen: Make, asked: ModelRequest
) -> None:
    server.script([{"match": {"kind": "upload"}, "behave": {"latency_ms": 400}},
                   {"behave": {"latency_ms": 400}}])  # fmt: skip
    provider = xingchen()
    assert provider.complete(asked, 10).text
    started = time.monotonic()
    with pytest.raises(ProviderTimeout):
        provider.complete(asked, 0.6)
    assert 0.5 < time.monotonic() - started < 5
    server.until(open_calls=0, open_connections=0)


@pytest.mark.parametrize("held", ["upload", "workflow"])
def test_killing_the_caller_ends_what_is_under_way(
    server: ModelServerProcess, xingchen: Make, asked: ModelRequest, held: str
) -> None:
    server.script([{"match": {"kind": held}, "behave": {"gate": "never"}}])
    caller = gevent.spawn(xingchen().complete, asked, 60)
    server.until(open_calls=1, uploads=1, calls=int(held == "workflow"))
    caller.kill()
    assert server.until(open_calls=0, open_connections=0)["cancelled"] == 1


def test_an_image_goes_to_an_openai_model_inside_the_newest_message(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    image = ModelFile("picture.png", "image/png", b"\x89PNG\r\n\x1a\n")
    part = json.dumps(
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        separators=(",", ":"),
    )
    server.script([{"match": {"body_contains": part}, "behave": {"answer": "echo"}},
                   {"behave": {"status": 418}}])  # fmt: skip
    assert provider.complete(ask("look", file=image), 10).text == "look"
    server.script([{"match": {"body_contains": "base64"}, "behave": {"status": 418}}])
    assert provider.complete(ask("read", file=PDF), 10).text


def test_a_form_without_a_file_is_refused(server: ModelServerProcess) -> None:
    url = f"{server.xingchen_url}/workflow/v1/upload_file"
    for kind, body in (("multipart/form-data; boundary=x", b"--x--"), ("text/plain", b"x")):
        answer = urllib3.request("POST", url, body=body, headers={"Content-Type": kind})
        assert answer.json()["code"] == 460
    assert server.stats()["uploads"] == 0
