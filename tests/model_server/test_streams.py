"""Event streams of the model server, whole and otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.model_server.reading import chunk_sizes, events, said, split, unchunked

Raw = Callable[..., bytes]

TEXT = "aé你😀 " * 4


def script(server: ModelServerProcess, **behave: Any) -> None:
    server.script([{"behave": behave}])


def test_a_stream_has_openais_form(server: ModelServerProcess, raw: Raw) -> None:
    script(server, answer="echo", chunk_chars=5)
    head, body = split(raw(TEXT, stream=True, stream_options={"include_usage": True}))
    assert "Content-Type: text/event-stream" in head
    found = events(unchunked(body))
    assert found[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [each["choices"][0]["delta"]["content"] for each in found[1:-3]] == [
        TEXT[at : at + 5] for at in range(0, len(TEXT), 5)
    ]
    assert found[-3]["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "stop"}
    assert found[-2]["usage"]["total_tokens"] > 0
    assert found[-1] == "[DONE]"
    assert {each["object"] for each in found[:-1]} == {"chat.completion.chunk"}


@pytest.mark.parametrize("write_bytes", [1, 2, 3, 7])
def test_h28_characters_are_split_at_any_byte(
    server: ModelServerProcess, raw: Raw, write_bytes: int
) -> None:
    script(server, answer="echo", write_bytes=write_bytes)
    _, body = split(raw(TEXT, stream=True))
    assert max(chunk_sizes(body)) == write_bytes
    assert "😀".encode() in unchunked(body)  # UTF-8, not \\u escapes
    assert said(events(unchunked(body))[:-1]) == TEXT


@pytest.mark.parametrize(("name", "end"), [("lf", b"\n"), ("crlf", b"\r\n"), ("cr", b"\r")])
def test_h29_line_ends_comments_and_missing_spaces(
    server: ModelServerProcess, raw: Raw, name: str, end: bytes
) -> None:
    script(server, answer="echo", line_end=name, data_space=False, comments=2)
    content = unchunked(split(raw(TEXT, stream=True))[1])
    assert content.count(b":", 0, 3) == 1
    assert content.count(b": keep-alive" + end) == 2 * content.count(b"data:{") + 2
    assert b"data: " not in content
    assert said(events(content, end)[:-1]) == TEXT


def test_h25_a_clean_end_after_three_deltas(server: ModelServerProcess, raw: Raw) -> None:
    script(server, answer="echo", chunk_chars=1, cut_after_chunks=3, cut="clean")
    found = events(unchunked(split(raw("abcdef", stream=True))[1]))
    assert said(found) == "abc"
    assert len(found) == 4  # the role and three deltas


def test_h25_an_end_without_a_finish_reason(server: ModelServerProcess, raw: Raw) -> None:
    script(server, answer="echo", finish_reason=None)
    found = events(unchunked(split(raw("abc", stream=True))[1]))
    assert found[-1] == "[DONE]"
    assert all(each["choices"][0]["finish_reason"] is None for each in found[:-1])


def test_h26_an_error_event_after_two_deltas(server: ModelServerProcess, raw: Raw) -> None:
    error = {"error": {"type": "server_error"}}
    script(
        server, answer="echo", chunk_chars=1, cut_after_chunks=2, cut="clean", stream_error=error
    )
    found = events(unchunked(split(raw("abcdef", stream=True))[1]))
    assert said(found) == "ab"
    assert found[-1] == error


def test_h27_a_stream_may_be_refused(server: ModelServerProcess, raw: Raw) -> None:
    script(server, status=429, retry_after=7)
    head, body = split(raw(stream=True))
    assert head.startswith("HTTP/1.1 429 ")
    assert "Retry-After: 7" in head
    assert json.loads(body)["error"]["type"] == "rate_limit_error"
