"""A foreign client's chat passed on to a real server: what comes back, how it ends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import gevent
import pytest
from gevent import GreenletExit
from gevent.event import Event

from flightsvc.errors import (
    AnswerCut,
    AnswerInvalid,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderUnreachable,
)
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.providers import ChatEnd, ChatProvider, ChatRequest

TEXT = "aé你😀 " * 4
BODY = {"model": "test-model", "messages": [{"role": "user", "content": TEXT}], "stream": True}


def chat(provider: ChatProvider, timeout_s: float = 10, **fields: Any) -> tuple[ChatEnd, list[Any]]:
    """One chat, and its chunks."""
    chunks: list[Any] = []
    request = ChatRequest(BODY, **fields)
    return provider.chat(request, timeout_s, chunks.append), chunks


def said(chunks: list[Any]) -> str:
    deltas = (each["choices"][0]["delta"] for each in chunks if each["choices"])
    return "".join(delta.get("content") or "" for delta in deltas)


def behave(server: ModelServerProcess, **fields: Any) -> None:
    server.script([{"behave": {"answer": "echo", **fields}}])


def test_both_providers_can_chat(make: Callable[..., Any]) -> None:
    assert isinstance(make(), ChatProvider)
    assert isinstance(make(provider="simulated", openai_base_url=""), ChatProvider)


def test_chunks_come_as_they_are_sent(server: ModelServerProcess, provider: Any) -> None:
    behave(server, gate="go", gate_after_chunks=2, chunk_chars=4)
    seen: list[Any] = []
    call = gevent.spawn(provider.chat, ChatRequest(BODY), 10, seen.append)
    server.until(open_calls=1)
    with gevent.Timeout(10):
        while len(seen) < 3:
            gevent.sleep(0.01)
    assert said(seen) == TEXT[:8]
    server.open_gate("go")
    assert call.get() == ChatEnd(done=True)
    assert said(seen) == TEXT
    assert server.until(open_connections=1)["connections"] == 1  # kept for the next call


@pytest.mark.parametrize("line_end", ["lf", "crlf", "cr"])
@pytest.mark.parametrize("write_bytes", [1, 3, 1000])
@pytest.mark.parametrize("framing", ["chunked", "close", "length"])
def test_h28_h29_any_dialect_says_the_same(
    server: ModelServerProcess, provider: Any, line_end: str, write_bytes: int, framing: str
) -> None:
    behave(
        server,
        line_end=line_end,
        write_bytes=write_bytes,
        framing=framing,
        data_space=write_bytes > 1,
        comments=2,
        headers={"Content-Type": "text/event-stream"},
    )
    end, chunks = chat(provider)
    assert (said(chunks), end.done) == (TEXT, True)


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"cut_after_chunks": 3, "cut": "fin"}, ProviderUnreachable),
        ({"cut_after_chunks": 3, "cut": "reset"}, ProviderUnreachable),
        ({"cut_after_bytes": 400, "cut": "fin"}, ProviderUnreachable),
        ({"cut_after_bytes": 400, "cut": "clean"}, AnswerCut),
        ({"events": ["no JSON"]}, AnswerCut),
        ({"events": ["[1]"]}, AnswerCut),
        ({"stream_error": {"error": {"message": "m", "code": 503}}}, ProviderUnavailable),
        ({"stream_error": {"error": {"type": "rate_limit_error"}}}, ProviderRateLimited),
        ({"stream_error": {"error": {"code": "content_filter"}}}, ProviderRejected),
        ({"silent_after_bytes": 600}, ProviderTimeout),
    ],
)
def test_h25_h26_what_is_cut_or_fails_is_an_error(
    server: ModelServerProcess, provider: Any, how: dict[str, Any], error: type[ProviderError]
) -> None:
    behave(server, **how)
    chunks: list[Any] = []
    with pytest.raises(error) as caught:
        provider.chat(ChatRequest(BODY, between_bytes_s=0.3), 10, chunks.append)
    assert type(caught.value) is error
    assert len(chunks) >= (0 if "events" in how else 1)
    server.until(open_connections=int(how.get("cut") == "clean"), open_calls=0)


@pytest.mark.parametrize("cut", ["clean", "close"])
def test_h25_an_end_without_its_word_is_told_apart(
    server: ModelServerProcess, provider: Any, cut: str
) -> None:
    framing = {"framing": "close"} if cut == "close" else {}
    behave(server, cut_after_chunks=3, cut="clean", **framing)
    end, chunks = chat(provider)
    assert (end.done, len(chunks)) == (False, 4)


def test_h27_a_refusal_before_the_first_byte_says_when_to_come_back(
    server: ModelServerProcess, provider: Any
) -> None:
    behave(server, status=429, retry_after=7)
    with pytest.raises(ProviderRateLimited) as caught:
        chat(provider)
    assert caught.value.retry_after_s == 7


def test_a_refused_request_comes_with_the_services_own_words(
    server: ModelServerProcess, provider: Any
) -> None:
    told = {"message": "too long", "type": "invalid_request_error", "param": "messages",
            "code": "context_length_exceeded"}  # fmt: skip
    behave(server, status=400, body={"error": told})
    with pytest.raises(ProviderRejected) as caught:
        chat(provider)
    assert caught.value.upstream_error == told
    assert "too long" not in str(caught.value)


def test_the_simulated_model_gives_as_many_choices_as_asked_for(make: Any) -> None:
    simulated = make(provider="simulated", openai_base_url="", simulated_latency_ms=0)
    chunks: list[Any] = []
    simulated.chat(ChatRequest({**BODY, "n": 2}), 10, chunks.append)
    ends = [each["choices"][0] for each in chunks if each["choices"]]
    assert [each["index"] for each in ends if each["finish_reason"]] == [0, 1]


def test_a_refusal_does_not_carry_our_key(server: ModelServerProcess, make: Any) -> None:
    told = {"message": "Incorrect key sk-our-own-secret, x", "code": "sk-our-own-secret"}
    behave(server, status=400, body={"error": told})
    with pytest.raises(ProviderRejected) as caught:
        chat(make(openai_api_key="sk-our-own-secret"))
    assert caught.value.upstream_error == {"message": "Incorrect key ***, x", "code": "***"}
    behave(server, status=404, body={"error": {"message": "max_tokens of x"}})
    with pytest.raises(ProviderRejected) as caught:
        chat(make(openai_api_key="x"))
    assert caught.value.upstream_error == {"message": "max_tokens of ***"}


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", "[" * 200 + "]" * 200])
def test_what_could_not_be_passed_on_is_malformed(
    server: ModelServerProcess, provider: Any, value: str
) -> None:
    odd = '{"choices": [{"index": 0, "delta": {}, "logprobs": ' + value + "}]}"
    for how in ({"events": [odd]}, {"body": odd, "headers": {"Content-Type": "application/json"}}):
        behave(server, **how)
        chunks: list[Any] = []
        with pytest.raises(AnswerInvalid) as caught:
            provider.chat(ChatRequest(BODY), 10, chunks.append)
        assert (caught.value.code, chunks) == ("AI_MODEL_OUTPUT_MALFORMED", [])


def test_brackets_within_a_text_are_no_nesting(server: ModelServerProcess, provider: Any) -> None:
    text = '["{\\' * 300
    event = json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]})
    behave(server, events=[event, "[DONE]"])
    end, chunks = chat(provider)
    assert (end.done, said(chunks)) == (True, text)


def test_a_service_that_does_not_stream_is_heard_too(
    server: ModelServerProcess, provider: Any
) -> None:
    body = {"id": "x", "choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}
    behave(server, body=body)
    end, chunks = chat(provider)
    assert (end.completion, chunks) == (body, [])
    behave(server, body={"error": {"message": "m", "type": "server_error"}})
    with pytest.raises(ProviderUnavailable):
        chat(provider)
    behave(server, body="[]")
    with pytest.raises(AnswerInvalid):
        chat(provider)


@pytest.mark.parametrize("silent", [{"never_answer": True}, {"silent_after_bytes": 300}])
def test_another_greenlet_can_end_a_silent_call(
    server: ModelServerProcess, provider: Any, silent: dict[str, Any]
) -> None:
    behave(server, **silent)
    cancelled = Event()
    call = gevent.spawn(chat, provider, 60, cancelled=cancelled, between_bytes_s=60)
    server.until(open_calls=1)
    began = time.monotonic()
    if silent.get("never_answer"):  # there is no answer yet to be ended: the call itself is
        cancelled.set()
        call.kill(block=False)
    else:
        gevent.sleep(0.2)
        cancelled.set()
    call.join(5)
    ended_with: object = call.value
    assert isinstance(ended_with, GreenletExit)
    assert time.monotonic() - began < 2
    assert server.until(open_connections=0)["cancelled"] == 1


def test_a_call_that_was_cancelled_before_it_began_is_none(provider: Any) -> None:
    cancelled = Event()
    cancelled.set()
    with pytest.raises(GreenletExit):
        chat(provider, cancelled=cancelled)


def test_the_services_models_are_listed(server: ModelServerProcess, provider: Any) -> None:
    assert [each["id"] for each in provider.list_models(5)] == ["test-model"]


def test_the_simulated_model_streams_over_its_latency(make: Callable[..., Any]) -> None:
    simulated = make(provider="simulated", openai_base_url="", simulated_latency_ms=200)
    began = time.monotonic()
    end, chunks = chat(simulated)
    assert end.done
    assert len(chunks) > 5
    assert time.monotonic() - began >= 0.2
    assert "[simulated]" in said(chunks) or "【模拟】" in said(chunks)
    assert said(chat(simulated)[1]) == said(chunks)
    with pytest.raises(ProviderTimeout):
        chat(simulated, timeout_s=0.1)
