"""What models say in other forms than OpenAI's: nothing is lost, doubled or made one."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightsvc.errors import AnswerInvalid
from flightsvc.gateway.chunks import Assembler, check_whole, play, to_bytes
from tests.gateway.test_chunks import HEAD, assembled, call, chunk, message

PART = {"type": "text", "text": "MID"}
THOUGHT = {"type": "thinking", "thinking": "hm"}


def shown(chunks: list[dict[str, Any]]) -> list[Any]:
    assembler = Assembler()
    return [assembler.add(copy.deepcopy(each)) for each in chunks]


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (["a", [PART], "b", "c"],
         [{"type": "text", "text": "a"}, PART, {"type": "text", "text": "bc"}]),
        ([[THOUGHT], [THOUGHT], "he", "llo"],
         [THOUGHT, THOUGHT, {"type": "text", "text": "hello"}]),
        (["a", PART, "b"], [{"type": "text", "text": "a"}, PART, {"type": "text", "text": "b"}]),
        ([PART, [THOUGHT]], [PART, THOUGHT]),
        (["", [PART], ""], [PART]),
        (["a", None, "b"], "ab"),
    ],
)  # fmt: skip
def test_text_and_parts_of_one_message_are_parts(pieces: list[Any], whole: Any) -> None:
    said = assembled([*(chunk({"content": each}) for each in pieces), chunk({}, "stop")])
    assert said["choices"][0]["message"]["content"] == whole
    assert assembled(list(play(said))) == said


@pytest.mark.parametrize(
    "pieces",
    [
        [{"content": "a"}, {"content": 5}],
        [{"content": [PART]}, {"content": True}],
        [{"audio": {"data": "A"}}, {"audio": "b"}],
        [{"annotations": [1]}, {"annotations": {"a": 1}}],
        [call(0, function={"arguments": "{"}), call(0, function={"arguments": {"a": 1}})],
    ],
)
def test_what_cannot_be_joined_is_malformed(pieces: list[dict[str, Any]]) -> None:
    first, second = map(chunk, pieces)
    assembler = Assembler()
    assembler.add(first)
    with pytest.raises(AnswerInvalid) as caught:
        assembler.add(second)
    assert caught.value.code == "AI_MODEL_OUTPUT_MALFORMED"


def function(name: str, arguments: str) -> dict[str, str]:
    return {"name": name, "arguments": arguments}


def test_calls_of_one_index_but_of_several_ids_are_several() -> None:
    chunks = [
        chunk(call(0, id="a", function=function("f", "{"))),
        chunk(call(0, function={"arguments": "}"})),
        chunk(call(0, id="b", function=function("g", "["))),
        chunk(call(0, id="", function={"arguments": "]"})),
        chunk(call(1, id="c", function=function("h", "1"))),
        chunk(call(1, function={"arguments": "2"})),
    ]
    calls = message(chunks)["tool_calls"]
    told = [(each["id"], each["function"]) for each in calls]
    assert told == [
        ("a", function("f", "{}")), ("b", function("g", "[]")), ("c", function("h", "12")),
    ]  # fmt: skip
    # clients join by the index, and must come to the same
    numbers = [
        each["choices"][0]["delta"]["tool_calls"][0]["index"] for each in shown(chunks)
    ]
    assert numbers == [0, 0, 1, 1, 2, 2]


def test_calls_without_index_and_id_in_one_chunk_are_several() -> None:
    pieces = [{"function": function("f", "{}")}, {"function": function("f", "[]")}]
    [one] = shown([chunk({"tool_calls": pieces})])
    assert [each["index"] for each in one["choices"][0]["delta"]["tool_calls"]] == [0, 1]
    assert message([chunk({"tool_calls": pieces})])["tool_calls"] == pieces


def test_constant_texts_of_each_chunk_are_said_once() -> None:
    detail = {"type": "reasoning.text", "index": 0, "format": "x"}
    said = message(
        [
            chunk({"content": "ha", "kind": "text", "details": [{**detail, "text": "a"}]}),
            chunk({"content": "ha", "kind": "text", "details": [{**detail, "text": "b"}]}),
            chunk({"details": [{"type": "reasoning.encrypted", "index": 0, "data": "c"}]}),
        ]
    )
    assert (said["content"], said["kind"]) == ("haha", "text")
    assert said["details"] == [
        {**detail, "text": "ab"}, {"type": "reasoning.encrypted", "index": 0, "data": "c"},
    ]  # fmt: skip


def test_what_says_nothing_does_no_harm() -> None:
    usage = {"total_tokens": 3}
    chunks: list[dict[str, Any]] = [
        {},
        {"error": None},
        {"type": "ping"},
        {**chunk({"content": "a"}, "stop"), "error": None},
        {"id": "x", "usage": usage},
        {"choices": None, "usage": usage},
    ]
    assert [each for each in shown(chunks) if each is not None] == [chunk({"content": "a"}, "stop")]
    said = assembled(chunks)
    assert (said["id"], said["usage"], "error" in said) == (HEAD["id"], usage, False)


def test_a_message_within_a_stream_is_heard_once() -> None:
    whole = {"index": 0, "message": {"role": "assistant", "content": "ab"}, "finish_reason": "stop"}
    [alone] = shown([{**HEAD, "choices": [whole]}])
    assert alone["choices"][0]["delta"] == whole["message"]
    assert assembled([{**HEAD, "choices": [whole]}])["choices"] == [whole]
    assert assembled([chunk({"content": "ab"}), {**HEAD, "choices": [whole]}])["choices"] == [whole]


def test_a_number_that_json_does_not_have_is_never_written() -> None:
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="JSON"):
            to_bytes({"a": number})


NAMES = st.sampled_from(
    ["content", "reasoning", "text", "kind", "x", "id", "type", "arguments", "name", "tool_calls"]
)
PLAIN = st.none() | st.booleans() | st.integers(0, 9) | st.text("ab", max_size=2)
INDEXED = st.fixed_dictionaries(
    {"index": st.integers(0, 1)},
    optional={"id": st.sampled_from("ab"), "type": st.sampled_from("tu"), "text": st.text("ab")},
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    PLAIN | INDEXED,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
PIECES_OF_CALLS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "index": st.none() | st.integers(0, 2),
            "id": st.none() | st.sampled_from(["", "a", "b"]),
            "function": st.fixed_dictionaries(
                {"arguments": st.text("ab", max_size=2)}, optional={"name": st.sampled_from("fg")}
            ),
        },
    ),
    max_size=3,
)
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": VALUES, "reasoning": VALUES, "kind": VALUES, "details": VALUES,
        "tool_calls": st.none() | PIECES_OF_CALLS,
    },
)  # fmt: skip


@given(st.lists(DELTAS, max_size=5))
def test_whatever_comes_is_joined_so_that_it_can_be_played_or_is_malformed(
    deltas: list[dict[str, Any]],
) -> None:
    try:
        said = assembled([*map(chunk, deltas), chunk({}, "stop")])
    except AnswerInvalid:
        return
    check_whole(said)
    assert assembled([json.loads(to_bytes(each)) for each in play(said)]) == said


@given(st.lists(DELTAS, max_size=5))
def test_who_joins_the_shown_chunks_has_the_same(deltas: list[dict[str, Any]]) -> None:
    try:
        seen = shown([*map(chunk, deltas), chunk({}, "stop")])
    except AnswerInvalid:
        return
    assert assembled(seen) == assembled([*map(chunk, deltas), chunk({}, "stop")])
