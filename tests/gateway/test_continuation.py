"""Who has a part of an answer goes on with another one only if that begins with the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightsvc.errors import FlightInterrupted
from flightsvc.gateway.chunks import Assembler, to_bytes
from flightsvc.gateway.continuation import Continuation

TEXT = "Größe: 你好, 😀 and so on."


def answer(text: str, size: int, name: str, *, tool: str = "") -> list[bytes]:
    """The chunks of an answer, its text in pieces of a size."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": "hm"}]
    deltas += [{"content": text[at : at + size]} for at in range(0, len(text), size)]
    if tool:
        function = {"name": "f", "arguments": tool}
        deltas += [{"tool_calls": [{"index": 0, "id": "c", "function": function}]}]
    made: list[dict[str, Any]]
    made = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    made += [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    return [to_bytes({"id": name, "created": 1, "model": "m", "choices": [one]}) for one in made]


def told(had: list[bytes], new: list[bytes]) -> dict[str, Any]:
    """The whole that a caller is given."""
    going_on = Continuation(had)
    more = [going_on.take(each) for each in new]
    going_on.end()
    assembler = Assembler()
    for each in [*had, *filter(None, more)]:
        assembler.add(json.loads(each))
    return assembler.completion()


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 40))
def test_the_same_text_in_other_pieces_goes_on_under_one_id(old: int, new: int, had: int) -> None:
    given_before = answer(TEXT, old, "old", tool='{"a": 1}')[:had]
    whole = told(given_before, answer(TEXT, new, "new", tool='{"a": 1}'))
    assert whole["id"] == "old"
    said = whole["choices"][0]["message"]
    assert (said["content"], said["reasoning_content"]) == (TEXT, "hm")
    assert said["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1}'}


def test_a_longer_text_goes_on() -> None:
    had = answer("Hello", 2, "old")[:4]
    assert told(had, answer("Hello, world", 3, "new"))["choices"][0]["message"]["content"] == (
        "Hello, world"
    )


@pytest.mark.parametrize(
    ("had", "new"),
    [
        (answer("Hello", 2, "old")[:4], answer("Help me", 3, "new")),
        (answer("Hello", 2, "old")[:5], answer("Hell", 4, "new")),
        (answer("Hello", 2, "old"), answer("Hello!", 4, "new")),
        (answer("Hello", 2, "old"), answer("Hello", 4, "new", tool="{}")),
        (answer("Hello", 9, "old", tool="{}")[:4], answer("Hello", 9, "new", tool="[]")),
        (answer("Hello", 9, "old", tool="{}")[:4], answer("Hello!", 9, "new", tool="{}")),
    ],
)
def test_another_text_does_not(had: list[bytes], new: list[bytes]) -> None:
    if b"stop" in had[-1]:  # it was at its end: there was no more to come
        assert told(had, answer("Hello", 1, "new"))["choices"][0]["finish_reason"] == "stop"
    with pytest.raises(FlightInterrupted) as caught:
        told(had, new)
    assert caught.value.retryable


def test_log_probabilities_cannot_be_compared_in_pieces() -> None:
    choice = {"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [{"token": "a"}]}}
    had = [to_bytes({"id": "x", "choices": [choice]})]
    with pytest.raises(FlightInterrupted):
        Continuation(had).take(had[0])


def test_what_each_chunk_repeats_is_compared_once() -> None:
    deltas = [{"content": each, "kind": "text"} for each in ("a", "b", "c")]
    made: list[dict[str, Any]]
    made = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    made += [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    chunks = [to_bytes({"id": "x", "choices": [each]}) for each in made]
    said = told(chunks[:2], chunks)["choices"][0]["message"]
    assert (said["content"], said["kind"]) == ("abc", "text")
