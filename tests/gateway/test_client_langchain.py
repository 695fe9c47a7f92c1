"""`langchain-openai`, as its users use it."""

from __future__ import annotations

from typing import Any

import gevent
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.nodes import Pair
from tests.gateway.talking import MODEL, Chat
from tests.gateway.test_client_openai_python import CALLS, FUNCTION, tool_events

TEXT = "Grüße, 你好 😀 world. " * 3


def langchain(nodes: Pair, node: int) -> ChatOpenAI:
    return ChatOpenAI(
        model=MODEL,
        base_url=f"{nodes.nodes[node].service.url}/v1",
        api_key=SecretStr("token-alice"),
        max_retries=0,
    )


def streamed(client: ChatOpenAI, text: str) -> list[Any]:
    return list(client.stream(text))


def test_streams_and_calls_share_one(nodes: Pair, model: ModelServerProcess) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=5, chunk_delay_ms=10, latency_ms=300)])
    streams = [gevent.spawn(streamed, langchain(nodes, node), chat.text) for node in (0, 1)]
    calls = [gevent.spawn(langchain(nodes, node).invoke, chat.text) for node in (0, 1)]
    assert {"".join(str(each.content) for each in stream.get()) for stream in streams} == {
        chat.text
    }
    assert {call.get().content for call in calls} == {chat.text}
    usage = calls[0].get().usage_metadata
    assert usage is not None
    assert usage["total_tokens"] > 0
    assert model.stats()["by_rule"][chat.mark] == 1


def test_tools(nodes: Pair, model: ModelServerProcess) -> None:
    chat = Chat()
    model.script([chat.rule(events=tool_events())])
    answer = langchain(nodes, 0).bind_tools([{"type": "function", "function": FUNCTION}]).invoke(
        chat.text
    )  # fmt: skip
    (call,) = answer.tool_calls
    assert (call["id"], call["name"]) == (CALLS[0]["id"], "weather")
    assert call["args"] == {"city": "Köln"}
