"""The model server as XingChen: workflows plain and streamed, uploads, counts and gates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import gevent
import pytest
import urllib3

from flightsvc.interview import demeanor, evaluation, extraction, follow_up
from flightsvc.interview.results import read_result
from flightsvc.model_server.process import ModelServerProcess
from tests.model_server.reading import events

Run = Callable[..., urllib3.BaseHTTPResponse]

TEXT = "aé你😀 " * 4


@pytest.fixture
def run(server: ModelServerProcess) -> Run:
    """Runs a workflow; parameters and fields of the body may be given."""

    def ask(text: str = TEXT, *, stream: bool = False, **fields: Any) -> urllib3.BaseHTTPResponse:
        body = {
            "flow_id": "f1",
            "uid": "u",
            "parameters": {"AGENT_USER_INPUT": text},
            "stream": stream,
            **fields,
        }
        url = f"{server.xingchen_url}/workflow/v1/chat/completions"
        return urllib3.request("POST", url, json=body, retries=False, timeout=20)

    return ask


def script(server: ModelServerProcess, **behave: Any) -> None:
    server.script([{"behave": behave}])


def said(frames: list[Any]) -> str:
    return "".join(each["choices"][0]["delta"]["content"] for each in frames if "choices" in each)


def test_a_plain_answer_has_xingchens_form(server: ModelServerProcess, run: Run) -> None:
    script(server, answer="echo")
    document = run().json()
    assert (document["code"], document["message"]) == (0, "Success")
    (choice,) = document["choices"]
    assert choice["delta"] == {"role": "assistant", "content": TEXT, "reasoning_content": ""}
    assert choice["finish_reason"] == "stop"
    assert document["usage"]["total_tokens"] > 0


def test_a_stream_ends_with_stop_and_without_done(server: ModelServerProcess, run: Run) -> None:
    script(server, answer="echo", chunk_chars=5)
    response = run(stream=True)
    assert response.headers["Content-Type"] == "text/event-stream"
    frames = events(response.data)
    assert said(frames) == TEXT
    assert [each["choices"][0]["finish_reason"] for each in frames][-2:] == [None, "stop"]
    assert frames[-1]["workflow_step"]["progress"] == 1
    assert {each["code"] for each in frames} == {0}
    script(server, answer="echo", workflow_done=True)
    assert events(run(stream=True).data)[-1] == "[DONE]"


@pytest.mark.parametrize("stream", [False, True])
def test_a_code_comes_with_http_200(
    server: ModelServerProcess, run: Run, stream: bool
) -> None:
    script(server, code=20369)
    response = run(stream=stream)
    body = events(response.data)[0] if stream else response.json()
    assert response.status == 200
    assert body["code"] == 20369
    assert body["message"]
    assert "choices" not in body


def test_an_interrupt_carries_what_the_workflow_waits_for(
    server: ModelServerProcess, run: Run
) -> None:
    waits = {"event_id": "e", "value": {"content": "Which city?"}}
    script(server, answer="echo", finish_reason="interrupt", event_data=waits)
    last = events(run(stream=True).data)[-1]
    assert (last["choices"][0]["finish_reason"], last["event_data"]) == ("interrupt", waits)
    plain = run().json()
    assert (plain["choices"][0]["finish_reason"], plain["event_data"]) == ("interrupt", waits)


def test_streams_are_cut_where_the_script_says(server: ModelServerProcess, run: Run) -> None:
    script(server, answer="echo", chunk_chars=1, cut_after_chunks=3, cut="clean")
    assert said(events(run("abcdef", stream=True).data)) == "abc"
    late = {"code": 20359, "message": "late"}
    script(
        server, answer="echo", chunk_chars=1, cut_after_chunks=2, cut="clean", stream_error=late
    )
    frames = events(run("abcdef", stream=True).data)
    assert (said(frames), frames[-1]) == ("ab", late)
    script(server, answer="echo", stream_error=late)
    frames = events(run("abcdef", stream=True).data)
    assert (said(frames), frames[-1]) == ("abcdef", late)
    script(server, answer="echo", finish_reason=None)
    assert events(run(stream=True).data)[-1]["choices"][0]["finish_reason"] is None


def test_an_http_error_has_a_message_and_no_code(server: ModelServerProcess, run: Run) -> None:
    script(server, status=401)
    response = run()
    assert response.status == 401
    assert set(response.json()) == {"message"}


@pytest.mark.parametrize(
    "fields",
    [
        {"flow_id": ""},
        {"flow_id": 7},
        {"parameters": []},
        {"stream": None},
        {"uid": "u" * 41},
        {"chat_id": "c" * 33},
    ],
)
def test_a_wrong_request_is_code_460_and_no_call(
    server: ModelServerProcess, run: Run, fields: dict[str, Any]
) -> None:
    body = {"stream": False, **fields}
    stream = body.pop("stream")
    response = run(stream=stream, **body)
    assert (response.status, response.json()["code"]) == (200, 460)
    assert server.stats()["calls"] == 0


def test_rules_tell_kinds_and_workflows_apart(server: ModelServerProcess, run: Run) -> None:
    server.script(
        [
            {"name": "chat", "match": {"kind": "chat"}},
            {"name": "f1", "match": {"kind": "workflow", "model": "f1"}},
            {"name": "said", "match": {"last_user_contains": "你"}},
        ]
    )
    for flow in ("f1", "f2"):
        assert run(flow_id=flow).status == 200
    urllib3.request("POST", f"{server.base_url}/chat/completions", json={"messages": []})
    assert server.stats()["by_rule"] == {"f1": 1, "said": 1, "chat": 1}


def test_calls_are_held_and_counted_without_their_chat_id(
    server: ModelServerProcess, run: Run
) -> None:
    server.script([{"match": {"kind": "workflow"}, "behave": {"gate": "g"}}])
    calls = [gevent.spawn(run, "same", chat_id=f"c{n}") for n in range(5)]
    stats = server.until(open_calls=5)
    assert list(stats["by_key"].values()) == [5]
    server.open_gate("g")
    gevent.joinall(calls, raise_error=True)
    assert server.until(open_calls=0)["calls"] == 5


def upload(server: ModelServerProcess, name: str, content: bytes) -> Any:
    url = f"{server.xingchen_url}/workflow/v1/upload_file"
    return urllib3.request("POST", url, fields={"file": (name, content)}).json()


@pytest.mark.parametrize("content", [b"", b"\r\n--x\r\n", bytes(range(256)) * 100, b"a\rb\nc\n\n"])
def test_an_upload_is_named_by_its_content_and_is_no_call(
    server: ModelServerProcess, content: bytes
) -> None:
    document = upload(server, "r.pdf", content)
    assert document["code"] == 0
    digest = hashlib.sha256(content).hexdigest()
    assert document["data"]["url"] == f"https://files.example/{digest}.pdf"
    stats = server.stats()
    assert (stats["uploads"], stats["calls"], stats["by_key"]) == (1, 0, {})


def test_an_upload_fails_as_the_script_says(server: ModelServerProcess) -> None:
    server.script([{"match": {"kind": "upload", "times": 1}, "behave": {"code": 23601}}])
    assert upload(server, "r.pdf", b"x")["code"] == 23601
    assert upload(server, "r.pdf", b"x")["code"] == 0


def test_the_answers_fit_the_stage_that_a_workflow_looks_like(
    server: ModelServerProcess, run: Run
) -> None:
    def content(**parameters: str) -> str:
        text: str = run(parameters=parameters).json()["choices"][0]["delta"]["content"]
        return text

    read_result(content(AGENT_USER_INPUT="x", question="y"), evaluation.Evaluation)
    read_result(content(AGENT_USER_INPUT="x", max_follow_up="2"), follow_up.FollowUp)
    read_result(content(USER_FILE="https://x/a.pdf"), extraction.Extraction)
    read_result(content(USER_FILE="https://x/a.jpeg"), demeanor.Demeanor)


def test_the_answers_fit_the_stage_that_a_prompt_looks_like(server: ModelServerProcess) -> None:
    for stage, schema in (
        (evaluation, evaluation.Evaluation),
        (follow_up, follow_up.FollowUp),
        (extraction, extraction.Extraction),
        (demeanor, demeanor.Demeanor),
    ):
        system = {"role": "system", "content": stage.INSTRUCTIONS}
        user = {"role": "user", "content": json.dumps({"answer": "x", "resume": "y"})}
        url = f"{server.base_url}/chat/completions"
        answer = urllib3.request("POST", url, json={"messages": [system, user]}).json()
        read_result(answer["choices"][0]["message"]["content"], schema)
