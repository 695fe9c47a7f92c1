"""What an OpenAI-compatible model says, and which of it is an answer."""

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
    ProviderUnavailable,
)
from flightsvc.metrics import Metrics
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.providers import Message, ModelRequest, Provider
from tests.providers.failing import SAID, SECRET, failure

Ask = Callable[..., ModelRequest]


def whole(**changes: Any) -> dict[str, Any]:
    """A good answer's body, with changes to its choice."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": SAID},
        "finish_reason": "stop",
    }
    return {"choices": [choice | changes], "model": "m"}


def test_a_whole_answer(server: ModelServerProcess, provider: Provider, ask: Ask) -> None:
    server.script([{"behave": {"answer": "text", "text": "分数 é 😀"}}])
    answer = provider.complete(ask(), 10)
    assert (answer.text, answer.model, answer.simulated) == ("分数 é 😀", "test-model", False)
    assert answer.usage is not None
    assert set(answer.usage) == {"prompt_tokens", "completion_tokens", "total_tokens"}
    assert "分数" not in repr(answer)


@pytest.mark.parametrize("behave", [{"encoding": "gzip"}, {"ascii": True}, {"framing": "close"}])
@pytest.mark.parametrize("write_bytes", [1, 3, 1000])
def test_the_same_text_however_it_travels(
    server: ModelServerProcess,
    provider: Provider,
    ask: Ask,
    behave: dict[str, Any],
    write_bytes: int,
) -> None:
    text = "aé你😀" * 5
    framing = {"framing": "chunked"}
    good = {"answer": "text", "text": text, "write_bytes": write_bytes}
    server.script([{"behave": {**framing, **good, **behave}}])
    assert provider.complete(ask(), 10).text == text


def test_the_key_is_sent_as_a_bearer_token(
    server: ModelServerProcess, make: Callable[..., Provider], ask: Ask
) -> None:
    server.script(
        {
            "rules": [{"match": {"bearer": SECRET}, "behave": {"answer": "echo"}}],
            "default": {"status": 401},
        }
    )
    assert make().complete(ask("hello"), 10).text == "hello"
    refused = failure(make(openai_api_key=""), ask())
    assert isinstance(refused, ProviderRejected)
    assert "openai_api_key" in str(refused)


def test_the_json_format_is_asked_for_where_openai_allows_it(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    wanted = '"response_format":{"type":"json_object"}'
    server.script(
        {
            "rules": [
                {"match": {"body_contains": wanted}, "behave": {"answer": "text", "text": "json"}}
            ],
            "default": {"answer": "text", "text": "free"},
        }
    )
    assert provider.complete(ask("Reply in JSON."), 10).text == "json"
    assert provider.complete(ask("Reply."), 10).text == "free"
    assert provider.complete(ask("Reply in JSON.", json_answer=False), 10).text == "free"


def test_messages_arrive_in_their_order(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    server.script({"rules": [], "default": {"answer": "echo"}})
    messages = (Message("system", "s"), Message("user", "one"), Message("user", "two"))
    assert provider.complete(ask(messages=messages), 10).text == "two"


@pytest.mark.parametrize(
    ("body", "kind", "upstream_code"),
    [
        ({"error": {"message": SAID, "type": "server_error", "code": "10012"}}, None, "10012"),
        ({"error": {"message": SAID, "type": "rate_limit_error"}}, ProviderRateLimited, None),
        ({"error": {"code": 429, "message": SAID}}, ProviderRateLimited, "429"),
        ({"error": {"code": "400", "message": SAID}}, ProviderRejected, "400"),
        ({"error": {"type": "invalid_request_error"}}, ProviderRejected, None),
        ({"error": {"code": "content_filter"}}, ProviderRejected, "content_filter"),
        ({"error": {"type": "overloaded_error"}}, ProviderUnavailable, "overloaded_error"),
        ({"error": SAID}, ProviderUnavailable, None),
        ({"error": True}, ProviderUnavailable, None),
        ({"code": 10013, "message": SAID, "sid": "x"}, ProviderUnavailable, "10013"),
        ({**whole(), "code": 11200}, ProviderUnavailable, "11200"),
        ({**whole(), "code": "11200"}, ProviderUnavailable, "11200"),
        ({**whole(), "code": "invalid_api_key"}, ProviderRejected, "invalid_api_key"),
        ({**whole(), "code": SAID}, ProviderUnavailable, None),
        ({**whole(), "error": {"message": SAID}}, ProviderUnavailable, None),
        (whole(error={"code": 502, "message": SAID}), ProviderUnavailable, "502"),
    ],
)
def test_h24_an_error_under_http_200_is_a_failure(
    server: ModelServerProcess,
    provider: Provider,
    ask: Ask,
    body: dict[str, Any],
    kind: type[ProviderError] | None,
    upstream_code: str | None,
) -> None:
    server.script([{"behave": {"body": body}}])
    error = failure(provider, ask())
    assert type(error) is (kind or ProviderUnavailable)
    assert upstream_code is None or error.upstream_code == upstream_code
    assert server.stats()["calls"] == 1


@pytest.mark.parametrize("fields", [{"code": 0}, {"code": "0"}, {"error": None}, {"error": {}}])
def test_h24_fields_that_say_no_error_do_not_harm(
    server: ModelServerProcess, provider: Provider, ask: Ask, fields: dict[str, Any]
) -> None:
    server.script([{"behave": {"body": {**whole(), **fields}}}])
    assert provider.complete(ask(), 10).text == SAID


@pytest.mark.parametrize(
    ("body", "code", "retryable"),
    [
        (SAID, "AI_MODEL_OUTPUT_MALFORMED", True),
        ("", "AI_MODEL_OUTPUT_MALFORMED", True),
        ("[" * 100_000, "AI_MODEL_OUTPUT_MALFORMED", True),
        ("[]", "AI_MODEL_OUTPUT_MALFORMED", True),
        ({}, "AI_MODEL_OUTPUT_MALFORMED", True),
        ({"choices": []}, "AI_MODEL_OUTPUT_MALFORMED", True),
        ({"choices": {"0": SAID}}, "AI_MODEL_OUTPUT_MALFORMED", True),
        ({"choices": [SAID]}, "AI_MODEL_OUTPUT_MALFORMED", True),
        (whole(message={"content": ["a"]}), "AI_MODEL_OUTPUT_MALFORMED", True),
        (json.dumps(whole(message={"content": "\ud83d"})), "AI_MODEL_OUTPUT_MALFORMED", True),
        (whole(message=None), "AI_ANSWER_EMPTY", True),
        (whole(message={"content": None}), "AI_ANSWER_EMPTY", True),
        (whole(message={"content": " \n\u3000"}), "AI_ANSWER_EMPTY", True),
        (whole(finish_reason="length"), "AI_ANSWER_TRUNCATED", False),
        (whole(finish_reason="content_filter"), "AI_CONTENT_FILTERED", False),
        (whole(message={"content": None, "refusal": SAID}), "AI_CONTENT_FILTERED", False),
    ],
)
def test_what_is_not_a_whole_answer_is_invalid(
    server: ModelServerProcess, provider: Provider, ask: Ask, body: Any, code: str, retryable: bool
) -> None:
    server.script([{"behave": {"body": body}}])
    error = failure(provider, ask())
    assert type(error) is AnswerInvalid
    assert (error.code, error.retryable) == (code, retryable)


@pytest.mark.parametrize(
    "body",
    [
        whole(finish_reason=None),
        whole(finish_reason=7),
        whole(finish_reason="tool_calls"),
        {"choices": [{"message": {"content": SAID}}]},
    ],
)
def test_h25_an_answer_that_does_not_say_that_it_ended_is_cut(
    server: ModelServerProcess, provider: Provider, ask: Ask, body: Any
) -> None:
    server.script([{"behave": {"body": body}}])
    error = failure(provider, ask())
    assert type(error) is AnswerCut
    assert (error.code, error.retryable) == ("AI_ANSWER_INCOMPLETE", True)


def test_a_body_that_is_not_what_its_encoding_says_is_invalid(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    server.script([{"behave": {"body": SAID, "headers": {"Content-Encoding": "gzip"}}}])
    assert failure(provider, ask()).code == "AI_MODEL_OUTPUT_MALFORMED"


def test_calls_are_timed_and_failures_counted_under_the_configured_model(
    server: ModelServerProcess, provider: Provider, ask: Ask, metrics: Metrics
) -> None:
    server.script([{"match": {"times": 2}, "behave": {"status": 503}}])
    failure(provider, ask())
    failure(provider, ask())
    provider.complete(ask(), 10)
    seen = metrics.snapshot()
    assert seen["provider.errors.openai.test-model.PROVIDER_UNAVAILABLE"] == 2
    assert seen["provider.time.openai.test-model"] == 3


def test_the_answers_own_model_name_is_bounded(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    server.script([{"behave": {"body": {**whole(), "model": "x" * 10_000, "usage": {"a": 1}}}}])
    answer = provider.complete(ask(), 10)
    assert (answer.model, answer.usage) == ("test-model", None)
