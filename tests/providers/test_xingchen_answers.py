"""What XingChen's workflows say, plain and in frames, and which of it is an answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from flightsvc.errors import (
    AnswerCut,
    AnswerInvalid,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderUnreachable,
    SettingsError,
)
from flightsvc.interview.demeanor import Demeanor
from flightsvc.interview.evaluation import Evaluation
from flightsvc.interview.extraction import Extraction
from flightsvc.interview.follow_up import FollowUp
from flightsvc.interview.results import read_result
from flightsvc.metrics import Metrics
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.providers import ModelFile, ModelRequest, Provider, make_models
from flightsvc.providers.xingchen import user_id
from flightsvc.settings import Settings
from tests.providers.failing import KEY, PROMPT, SAID, SECRET, failure

Ask = Callable[..., ModelRequest]
Make = Callable[..., Provider]


def whole(**changes: Any) -> dict[str, Any]:
    """A good reply's body, with changes to its choice."""
    choice = {"index": 0, "delta": {"role": "assistant", "content": SAID}, "finish_reason": "stop"}
    return {"code": 0, "message": "Success", "choices": [choice | changes]}


@pytest.mark.parametrize("stream", [False, True])
def test_a_whole_answer(
    server: ModelServerProcess, xingchen: Make, ask: Ask, stream: bool
) -> None:
    server.script(
        {
            "rules": [
                {
                    "match": {"bearer": f"{KEY}:{SECRET}", "kind": "workflow", "stream": stream},
                    "behave": {"answer": "text", "text": "分数 é 😀" * 9},
                }
            ],
            "default": {"status": 401},
        }
    )
    answer = xingchen(xingchen_stream=stream).complete(ask(), 10)
    assert (answer.text, answer.model) == ("分数 é 😀" * 9, "evaluation-flow")
    assert not answer.simulated
    assert answer.usage is not None
    assert "分数" not in repr(answer)


@pytest.mark.parametrize(
    "behave",
    [
        {"line_end": "crlf", "data_space": False},
        {"line_end": "cr", "comments": 2},
        {"workflow_done": True},
        {"framing": "close"},
        {"chunk_chars": 1, "ascii": True},
    ],
)
@pytest.mark.parametrize("write_bytes", [1, 3, 1000])
def test_the_same_text_however_the_frames_travel(
    server: ModelServerProcess, xingchen: Make, ask: Ask, behave: dict[str, Any], write_bytes: int
) -> None:
    text = "aé你😀" * 5
    server.script([{"behave": {"answer": "text", "text": text, "write_bytes": write_bytes}}])
    assert xingchen(xingchen_stream=True).complete(ask(), 10).text == text
    server.script(
        [{"behave": {"answer": "text", "text": text, "write_bytes": write_bytes, **behave}}]
    )
    assert xingchen(xingchen_stream=True).complete(ask(), 10).text == text


def test_frames_that_nobody_asked_for_are_read_all_the_same(
    server: ModelServerProcess, xingchen: Make, ask: Ask
) -> None:
    frames = "".join(
        f"data: {json.dumps(whole(delta={'content': text}, finish_reason=reason))}\n\n"
        for text, reason in (("one ", None), ("two", None), ("", "stop"))
    )
    server.script([{"behave": {"body": frames}}])
    assert xingchen().complete(ask(), 10).text == "one two"


def test_an_answer_is_there_when_all_is_said_and_the_connection_stays_open(
    server: ModelServerProcess, xingchen: Make, ask: Ask
) -> None:
    frame = f"data: {json.dumps(whole())}\n\n"
    server.script([{"behave": {"body": frame + " ", "silent_after_bytes": len(frame)}}])
    assert xingchen().complete(ask(), 30).text == SAID
    server.until(open_connections=0, open_calls=0)


@pytest.mark.parametrize("stream", [False, True])
def test_one_connection_serves_calls_one_after_the_other(
    server: ModelServerProcess, xingchen: Make, ask: Ask, stream: bool
) -> None:
    provider = xingchen(xingchen_stream=stream)
    for _ in range(3):
        provider.complete(ask(), 10)
    stats = server.stats()
    assert (stats["calls"], stats["connections"]) == (3, 1)
    assert list(stats["by_key"].values()) == [3]  # the same question: only the chat's id differs


def test_what_is_sent(server: ModelServerProcess, xingchen: Make, ask: Ask) -> None:
    parts = (
        '"flow_id":"follow_up-flow"',
        f'"uid":"{user_id("acme/session-4711")}"',
        '"parameters":{"AGENT_USER_INPUT":"yes","question":"why?"}',
        '"stream":false',
        '"ext":{',
        '"chat_id":"',
        '"history":[]',
    )
    for part in parts:
        server.script(
            {
                "rules": [{"match": {"body_contains": part}, "behave": {}}],
                "default": {"status": 418},
            }
        )
        request = ask(
            stage="follow_up",
            parameters={"AGENT_USER_INPUT": "yes", "question": "why?"},
            user="acme/session-4711",
        )
        assert xingchen().complete(request, 10).text, part
    uid = user_id("acme/session-4711")
    assert len(uid) <= 40
    assert "4711" not in uid or "session" not in uid
    assert uid != user_id("acme/session-4712")


def test_without_parameters_the_user_s_newest_words_are_the_input(
    server: ModelServerProcess, xingchen: Make, ask: Ask
) -> None:
    server.script({"rules": [], "default": {"answer": "echo"}})
    assert xingchen().complete(ask("hello"), 10).text == "hello"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        *((code, ProviderUnavailable) for code in (20303, *range(20358, 20363), 20369, 20371)),
        *((code, ProviderRateLimited) for code in (20356, 20357, 20375, 20376, 20902, 20903)),
        (20804, ProviderTimeout),
        *((code, ProviderRejected) for code in (460, 20201, 20202, 20204, 20363, 20364, 20372)),
        *((code, ProviderRejected) for code in (21102, 21103, 23601, 23602, 23603)),
        *((code, ProviderRejected) for code in (20366, 20373, 20374, 20900, 20901)),
        (22302, ProviderUnavailable),
        (-1, ProviderUnavailable),
    ],
)
def test_h24_a_code_under_http_200_is_a_failure(
    server: ModelServerProcess,
    xingchen: Make,
    ask: Ask,
    code: int,
    kind: type[ProviderError],
    stream: bool,
) -> None:
    server.script([{"behave": {"code": code}}])
    error = failure(xingchen(xingchen_stream=stream), ask())
    assert type(error) is kind
    assert (error.upstream_status, error.upstream_code) == (200, str(code))
    assert server.stats()["calls"] == 1


@pytest.mark.parametrize("deltas", [0, 2])
def test_h24_a_code_in_a_later_frame_is_a_failure(
    server: ModelServerProcess, xingchen: Make, ask: Ask, deltas: int
) -> None:
    late = {"code": 20369, "message": SAID}
    behave = {"cut_after_chunks": deltas, "cut": "clean", "stream_error": late}
    server.script([{"behave": {"answer": "text", "text": SAID, "chunk_chars": 2, **behave}}])
    error = failure(xingchen(xingchen_stream=True), ask())
    assert (type(error), error.upstream_code) == (ProviderUnavailable, "20369")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"code": "20369", "message": SAID}, "20369"),
        ({**whole(), "code": 20369}, "20369"),
        ({**whole(), "code": SAID}, None),
        ({**whole(), "code": True}, None),
        ({**whole(), "code": [0]}, None),
    ],
)
def test_h24_codes_of_any_form(
    server: ModelServerProcess, xingchen: Make, ask: Ask, body: Any, code: str | None
) -> None:
    server.script([{"behave": {"body": body}}])
    error = failure(xingchen(), ask())
    assert (type(error), error.upstream_code) == (ProviderUnavailable, code)


@pytest.mark.parametrize("stream", [False, True])
def test_a_workflow_that_asks_back_is_a_refusal(
    server: ModelServerProcess, xingchen: Make, ask: Ask, stream: bool
) -> None:
    waits = {"event_id": "e1", "event_type": "interrupt", "value": {"content": SAID}}
    server.script([{"behave": {"finish_reason": "interrupt", "event_data": waits}}])
    error = failure(xingchen(xingchen_stream=stream), ask())
    assert type(error) is ProviderRejected
    assert error.upstream_code == "interrupt"


@pytest.mark.parametrize(
    ("body", "code", "retryable"),
    [
        (SAID, "AI_ANSWER_INCOMPLETE", True),
        ("", "AI_ANSWER_INCOMPLETE", True),
        ("data: nonsense\n\n", "AI_MODEL_OUTPUT_MALFORMED", True),
        ("data: []\n\n", "AI_MODEL_OUTPUT_MALFORMED", True),
        ("{nonsense", "AI_MODEL_OUTPUT_MALFORMED", True),
        ("[]", "AI_ANSWER_INCOMPLETE", True),
        ({}, "AI_MODEL_OUTPUT_MALFORMED", True),
        ({"code": 0}, "AI_MODEL_OUTPUT_MALFORMED", True),
        ({"code": 0, "choices": []}, "AI_MODEL_OUTPUT_MALFORMED", True),
        (whole(delta={"content": ["a"]}), "AI_MODEL_OUTPUT_MALFORMED", True),
        (json.dumps(whole(delta={"content": "\ud83d"})), "AI_MODEL_OUTPUT_MALFORMED", True),
        (whole(delta=None), "AI_ANSWER_EMPTY", True),
        (whole(delta={"content": " \n"}), "AI_ANSWER_EMPTY", True),
        (whole(finish_reason="length"), "AI_ANSWER_TRUNCATED", False),
        (whole(finish_reason="content_filter"), "AI_CONTENT_FILTERED", False),
        (whole(finish_reason=None), "AI_ANSWER_INCOMPLETE", True),
        (whole(finish_reason="tool_calls"), "AI_ANSWER_INCOMPLETE", True),
    ],
)
def test_what_is_not_a_whole_answer_is_a_failure(
    server: ModelServerProcess, xingchen: Make, ask: Ask, body: Any, code: str, retryable: bool
) -> None:
    server.script([{"behave": {"body": body}}])
    error = failure(xingchen(), ask())
    assert isinstance(error, (AnswerInvalid, AnswerCut))
    assert (error.code, error.retryable) == (code, retryable)


@pytest.mark.parametrize(
    ("behave", "kind"),
    [
        ({"cut_after_chunks": 2, "cut": "clean"}, AnswerCut),
        ({"cut_after_chunks": 2, "cut": "fin"}, ProviderUnreachable),
        ({"cut_after_chunks": 2, "cut": "reset"}, ProviderUnreachable),
        ({"cut_before_answer": True}, ProviderUnreachable),
        ({"finish_reason": None}, AnswerCut),
        ({"finish_reason": None, "workflow_done": True}, AnswerCut),
        ({"cut_after_bytes": 40, "framing": "close"}, AnswerInvalid),
        ({"pad_bytes": 9 * 1024 * 1024, "body": whole()}, AnswerInvalid),
    ],
)
def test_h25_a_stream_that_is_cut_is_no_answer(
    server: ModelServerProcess, xingchen: Make, ask: Ask, behave: dict[str, Any], kind: type
) -> None:
    said = {} if "body" in behave else {"answer": "text", "text": SAID}
    server.script([{"behave": {**said, "chunk_chars": 2, **behave}}])
    assert type(failure(xingchen(xingchen_stream=True), ask())) is kind
    server.until(open_calls=0)


@pytest.mark.parametrize(
    ("status", "body", "kind", "code", "hint"),
    [
        (401, {"message": SAID}, ProviderRejected, None, "xingchen_api_secret"),
        (403, {"message": SAID}, ProviderRejected, None, "xingchen_api_key"),
        (404, "no page", ProviderRejected, None, "xingchen_base_url"),
        (301, "", ProviderRejected, None, "xingchen_base_url"),
        (429, {"message": SAID}, ProviderRateLimited, None, ""),
        (500, {"code": 20201}, ProviderRejected, "20201", ""),
        (400, {"code": 20369}, ProviderUnavailable, "20369", ""),
        (500, {"code": 20902}, ProviderRateLimited, "20902", ""),
        (502, "<html>", ProviderUnavailable, None, ""),
    ],
)
def test_an_http_status_is_a_failure_and_a_number_says_more(
    server: ModelServerProcess,
    xingchen: Make,
    ask: Ask,
    status: int,
    body: Any,
    kind: type[ProviderError],
    code: str | None,
    hint: str,
) -> None:
    server.script([{"behave": {"status": status, "body": body, "retry_after": 7}}])
    error = failure(xingchen(), ask())
    assert type(error) is kind
    assert (error.upstream_status, error.upstream_code) == (status, code)
    assert error.retry_after_s == 7
    assert hint in str(error)


def test_a_stage_without_a_workflow_is_refused_without_a_call(
    server: ModelServerProcess, xingchen: Make, ask: Ask
) -> None:
    error = failure(xingchen(), ask(stage="chat"))
    assert type(error) is ProviderRejected
    assert "stages.chat.flow_id" in str(error)
    assert server.stats()["connections"] == 0


@pytest.mark.parametrize("stream", [False, True])
def test_the_server_s_own_answers_fit_each_stage(
    server: ModelServerProcess, xingchen: Make, ask: Ask, stream: bool
) -> None:
    provider = xingchen(xingchen_stream=stream)

    def said(
        stage: str, parameters: dict[str, str] | None = None, file: ModelFile | None = None
    ) -> str:
        given = {"AGENT_USER_INPUT": "A number that rises.", **(parameters or {})}
        return provider.complete(ask(stage=stage, parameters=given, file=file), 10).text

    question = {"question": "What is a fence?"}
    read_result(said("evaluation", question), Evaluation)
    counts = {"follow_up_count": "0", "max_follow_up": "2"}
    read_result(said("follow_up", {**question, **counts}), FollowUp)
    resume = {"question_count": "3", "resume_context": "Built a shop with Redis and Kafka."}
    pdf = ModelFile("resume.pdf", "application/pdf", b"%PDF-1.7 x")
    found = read_result(said("extraction", resume, pdf), Extraction)
    assert len(found.questions) == 3
    picture = ModelFile("picture.png", "image/png", b"\x89PNG")
    read_result(said("demeanor", file=picture), Demeanor)


def test_each_stage_s_workflow_is_a_model_of_its_own(
    server: ModelServerProcess, xingchen: Make, metrics: Metrics, ask: Ask
) -> None:
    settings = Settings.checked(
        provider="xingchen",
        xingchen_base_url=server.xingchen_url,
        xingchen_api_key=KEY,
        xingchen_api_secret=SECRET,
        stages={"evaluation": {"flow_id": "123"}, "follow_up": {"flow_id": "456"}},
    )
    models = make_models(settings, metrics)
    assert models.for_stage("evaluation").model == "123"
    assert models.for_stage("follow_up").model == "456"
    assert models.for_stage().model == models.for_stage("extraction").model == models.primary.model
    assert xingchen().model != models.primary.model  # other workflows
    models.for_stage("evaluation").complete(ask(), 10)
    server.script([{"behave": {"code": 20369}}])
    failure(models.for_stage("follow_up"), ask(stage="follow_up"))
    seen = metrics.snapshot()
    assert seen["provider.time.xingchen.123"] == 1
    assert seen["provider.errors.xingchen.456.PROVIDER_UNAVAILABLE"] == 1
    assert server.stats()["connections"] == 1
    models.close()


@pytest.mark.parametrize("value", ["k\r\nX-Evil: 1", "k 1", "k-é", "\n", ""])
@pytest.mark.parametrize("name", ["xingchen_api_key", "xingchen_api_secret"])
def test_a_key_that_no_header_can_hold_stops_the_start_and_is_not_shown(
    xingchen: Make, name: str, value: str
) -> None:
    with pytest.raises((SettingsError, ValueError)) as caught:
        xingchen(**{name: value})
    assert name in str(caught.value)
    assert not value.strip() or value not in str(caught.value)
    assert PROMPT not in str(caught.value)
