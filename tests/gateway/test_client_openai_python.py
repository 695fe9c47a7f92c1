"""The `openai` SDK for Python, as its users use it: nothing here knows of flightsvc."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import gevent
import openai
import pytest
from openai import OpenAI

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.nodes import Pair
from tests.gateway.talking import MODEL, Chat

TEXT = "Grüße, 你好 😀 world. " * 3
FUNCTION = {"name": "weather", "parameters": {"type": "object", "properties": {}}}
CALLS = [
    {"index": 0, "id": "call_1", "type": "function",
     "function": {"name": "weather", "arguments": ""}},
    {"index": 0, "function": {"arguments": '{"city": '}},
    {"index": 0, "function": {"arguments": '"Köln"}'}},
]  # fmt: skip


@pytest.fixture
def clients(nodes: Pair) -> Iterator[list[OpenAI]]:
    """One of each node."""
    made = [
        OpenAI(base_url=f"{node.service.url}/v1", api_key="token-alice", max_retries=0)
        for node in nodes.nodes
    ]
    yield made
    for each in made:
        each.close()


def streamed(client: OpenAI, chat: Chat, **options: Any) -> list[Any]:
    return list(client.chat.completions.create(**chat.body, stream=True, **options))


def asked(client: OpenAI, chat: Chat) -> Any:
    return client.chat.completions.create(**chat.body)


def text(chunks: list[Any]) -> str:
    return "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)


def tool_events(finish: str = "tool_calls") -> list[Any]:
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    deltas: list[Any] = [{"role": "assistant", "content": None}]
    deltas += [{"tool_calls": [call]} for call in CALLS]
    made = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    made += [{"index": 0, "delta": {}, "finish_reason": finish}]
    return [{**head, "choices": [one]} for one in made]


def test_streams_and_plain_calls_share_one(
    clients: list[OpenAI], model: ModelServerProcess
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=5, chunk_delay_ms=10, latency_ms=200)])
    running = [gevent.spawn(streamed, each, chat) for each in clients * 2]
    plain = [gevent.spawn(asked, each, chat) for each in clients]
    assert {text(each.get()) for each in running} == {chat.text}
    answers = [each.get() for each in plain]
    assert {each.choices[0].message.content for each in answers} == {chat.text}
    assert answers[0].usage.total_tokens > 0
    assert model.stats()["by_rule"][chat.mark] == 1


def test_usage_and_headers(clients: list[OpenAI], model: ModelServerProcess) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule()])
    *_, last = streamed(clients[0], chat, stream_options={"include_usage": True})
    assert last.usage.total_tokens > 0
    raw = clients[1].chat.completions.with_raw_response.create(**chat.body)
    assert raw.headers["Flight-Role"] == "replay"
    assert raw.parse().usage == last.usage


def test_tools(clients: list[OpenAI], model: ModelServerProcess) -> None:
    chat = Chat(tools=[{"type": "function", "function": FUNCTION}])
    model.script([chat.rule(events=tool_events())])
    with clients[0].chat.completions.stream(**chat.body) as stream:
        final = stream.get_final_completion()
    plain = clients[1].chat.completions.create(**chat.body)
    for answer in (final, plain):
        (call,) = answer.choices[0].message.tool_calls or []
        assert (call.id, call.function.name) == ("call_1", "weather")
        assert call.function.arguments == '{"city": "Köln"}'
        assert answer.choices[0].finish_reason == "tool_calls"
    assert model.stats()["by_rule"][chat.mark] == 1


@pytest.mark.parametrize(
    ("behave", "error"),
    [
        ({"status": 429, "retry_after": 7}, openai.RateLimitError),
        ({"status": 400, "body": {"error": {"message": "too long", "code": "c"}}},
         openai.BadRequestError),
        ({"status": 401}, openai.InternalServerError),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stream", [True, False])
def test_errors_are_of_the_classes_that_users_catch(
    clients: list[OpenAI], model: ModelServerProcess, behave: Any, error: Any, stream: bool
) -> None:
    chat = Chat()
    model.script([chat.rule(**behave)])
    with pytest.raises(error) as caught:
        clients[0].chat.completions.create(**chat.body, stream=stream)
    if behave["status"] == 429:
        assert caught.value.response.headers["retry-after"] == "7"
    if behave["status"] == 400:
        assert (caught.value.code, "too long" in caught.value.message) == ("c", True)


def test_other_mistakes(nodes: Pair, clients: list[OpenAI]) -> None:
    stranger = OpenAI(base_url=f"{nodes.a.service.url}/v1", api_key="wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        stranger.chat.completions.create(**Chat().body)
    with pytest.raises(openai.BadRequestError) as caught:
        clients[0].chat.completions.create(model=MODEL, messages=[])
    assert caught.value.param == "messages"
    named = {"Flight-Key": Chat().mark}
    clients[0].chat.completions.create(**Chat().body, extra_headers=named)
    with pytest.raises(openai.UnprocessableEntityError):
        clients[1].chat.completions.create(**Chat().body, extra_headers=named)


def test_an_error_inside_a_stream_is_raised_by_it(
    clients: list[OpenAI], model: ModelServerProcess
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=5, cut_after_chunks=2)])
    stream = clients[0].chat.completions.create(**chat.body, stream=True)
    seen: list[Any] = []
    with pytest.raises(openai.APIError) as caught:
        seen.extend(stream)
    assert text(seen) == chat.text[:10]
    assert caught.value.code == "provider_unreachable"


def test_the_sdks_own_retries_attach_instead_of_paying_again(
    nodes: Pair, model: ModelServerProcess
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(latency_ms=2_500)])
    client = OpenAI(
        base_url=f"{nodes.a.service.url}/v1", api_key="token-alice", timeout=1, max_retries=3
    )
    patient = OpenAI(base_url=f"{nodes.b.service.url}/v1", api_key="token-alice")
    stays = gevent.spawn(asked, patient, chat)
    answer = client.chat.completions.create(**chat.body)
    assert answer.choices[0].message.content == chat.text
    assert stays.get().id == answer.id
    assert model.stats()["by_rule"][chat.mark] == 1


def test_the_sdks_own_retries_heed_what_they_are_told(
    nodes: Pair, model: ModelServerProcess
) -> None:
    limited, refused = Chat(), Chat()
    model.script([limited.rule(nth=1, status=429, retry_after=1), limited.rule(),
                  refused.rule(status=401)])  # fmt: skip
    client = OpenAI(base_url=f"{nodes.a.service.url}/v1", api_key="token-alice", max_retries=2)
    began = time.monotonic()
    answer = client.chat.completions.create(**limited.body)
    assert answer.choices[0].message.content == limited.text
    assert time.monotonic() - began >= 1
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(**refused.body)
    assert model.stats()["by_rule"] == {limited.mark: 2, refused.mark: 1}


def test_models(clients: list[OpenAI]) -> None:
    assert [each.id for each in clients[0].models.list()] == [MODEL]
