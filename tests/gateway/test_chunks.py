"""Chunks become a completion and a completion chunks, whatever is in them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightsvc.errors import AnswerCut, AnswerInvalid
from flightsvc.gateway.chunks import Assembler, check_whole, play, to_bytes

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "m"}


def chunk(delta: dict[str, Any], reason: str | None = None, index: int = 0, **more: Any) -> Any:
    choice = {"index": index, "delta": delta, "finish_reason": reason, **more}
    return {**HEAD, "choices": [choice]}


def assembled(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    assembler = Assembler()
    for each in chunks:
        assembler.add(copy.deepcopy(each))
    return assembler.completion()


def message(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = assembled([*chunks, chunk({}, "stop")])["choices"][0]["message"]
    return found


def test_a_text() -> None:
    said = assembled(
        [chunk({"role": "assistant", "content": ""}), chunk({"content": "Hel"}),
         chunk({"content": "lo"}), chunk({}, "stop")]
    )  # fmt: skip
    assert said == {
        **HEAD,
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello"},
                "finish_reason": "stop",
            }
        ],
    }


def call(index: int | None, **fields: Any) -> dict[str, Any]:
    place = {} if index is None else {"index": index}
    return {"tool_calls": [{**place, **fields}]}


def test_tool_calls_in_pieces_side_by_side() -> None:
    said = message(
        [
            chunk({"role": "assistant", "content": None}),
            chunk(call(0, id="a", type="function", function={"name": "f", "arguments": ""})),
            chunk(call(1, id="b", type="function", function={"name": "g", "arguments": ""})),
            chunk(call(1, function={"arguments": '{"x"'})),
            chunk(call(0, function={"arguments": "{}"})),
            chunk(call(1, function={"arguments": ": 1}"})),
        ]
    )
    assert said == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": '{"x": 1}'}},
        ],
    }


def test_models_that_repeat_names_or_leave_out_the_index() -> None:
    repeated = message(
        [
            chunk({"role": "assistant", **call(0, id="a", type="function",
                                               function={"name": "f", "arguments": "{"})}),
            chunk({"role": "assistant", **call(0, id="a", type="function",
                                               function={"name": "f", "arguments": "}"})}),
        ]
    )  # fmt: skip
    without = message(
        [
            chunk(call(None, id="a", type="function", function={"name": "f", "arguments": "{"})),
            chunk(call(None, function={"arguments": "}"})),
            chunk(call(None, id="b", type="function", function={"name": "f", "arguments": "{}"})),
        ]
    )
    f = {"name": "f", "arguments": "{}"}
    assert repeated["role"] == "assistant"
    assert repeated["tool_calls"] == [{"id": "a", "type": "function", "function": f}]
    assert [each["id"] for each in without["tool_calls"]] == ["a", "b"]
    assert [each["function"] for each in without["tool_calls"]] == [f, f]


def test_reasoning_refusals_and_what_nobody_knows_are_texts_too() -> None:
    said = message(
        [
            chunk({"reasoning_content": "Let me "}),
            chunk({"reasoning_content": "think."}),
            chunk({"refusal": "I can"}),
            chunk({"refusal": "not.", "new_thing": "a"}),
            chunk({"new_thing": "a", "audio": {"id": "x", "data": "AA"}}),
            chunk({"audio": {"data": "BB", "expires_at": 9}}),
        ]
    )
    assert said["reasoning_content"] == "Let me think."
    assert said["refusal"] == "I cannot."
    assert said["new_thing"] == "a"
    assert said["audio"] == {"id": "x", "data": "AABB", "expires_at": 9}


def test_log_probabilities_of_all_chunks() -> None:
    tokens: list[dict[str, Any]]
    tokens = [{"token": token, "logprob": -0.5, "top_logprobs": []} for token in ("a", "b")]
    said = assembled(
        [
            chunk({"content": "a"}, logprobs={"content": [tokens[0]], "refusal": None}),
            chunk({"content": "b"}, logprobs={"content": [tokens[1]], "refusal": None}),
            chunk({}, "stop", logprobs=None),
        ]
    )
    assert said["choices"][0]["logprobs"] == {"content": tokens, "refusal": None}


def test_several_choices_in_any_order() -> None:
    said = assembled(
        [chunk({"content": "b"}, index=1), chunk({"content": "a"}), chunk({}, "stop", 1),
         chunk({"content": "a"}), chunk({}, "length")]
    )  # fmt: skip
    told = [(each["index"], each["message"]["content"]) for each in said["choices"]]
    assert told == [(0, "aa"), (1, "b")]
    assert [each["finish_reason"] for each in said["choices"]] == ["length", "stop"]


def test_token_counts_come_at_the_end_wherever_the_model_puts_them() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    for told in (
        [chunk({"content": "a"}), chunk({}, "stop"), {**HEAD, "choices": [], "usage": usage}],
        [chunk({"content": "a"}), {**chunk({}, "stop"), "usage": usage}],
        [{**chunk({"content": "a"}), "usage": {"total_tokens": 1}},
         {**chunk({}, "stop"), "usage": usage}],
    ):  # fmt: skip
        assembler = Assembler()
        shown = [assembler.add(copy.deepcopy(each)) for each in told]
        assert all("usage" not in each for each in shown if each is not None)
        assert assembler.completion()["usage"] == usage
        counts = assembler.usage_chunk()
        assert counts is not None
        assert (counts["choices"], counts["usage"]) == ([], usage)


def test_h28_halves_of_a_character_in_two_chunks_are_one() -> None:
    halves = [json.loads(f'"{half}"') for half in ("\\ud83d", "\\ude00", "\\ud83d")]
    said = message([chunk({"content": half}) for half in halves])
    assert said["content"] == "😀\ufffd"
    assert json.loads(to_bytes(chunk({"content": halves[0]}))) == chunk({"content": halves[0]})


@pytest.mark.parametrize(
    "chunks",
    [
        [],
        [{**HEAD, "choices": []}],
        [chunk({"content": "a"})],
        [chunk({"content": "a"}, "stop"), chunk({"content": "b"}, index=1)],
    ],
)
def test_h25_what_did_not_finish_is_not_whole(chunks: list[dict[str, Any]]) -> None:
    with pytest.raises(AnswerCut):
        assembled(chunks)


def test_h25_a_choice_that_never_came_is_missed() -> None:
    assembler = Assembler()
    assembler.add(chunk({"content": "a"}, "stop"))
    with pytest.raises(AnswerCut):
        assembler.completion(2)
    # but some models do not know `n`, and take that for all
    assert len(assembler.completion(2, done=True)["choices"]) == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": 1},
        {"choices": [1]},
        {"choices": [{"index": "a"}]},
        {"delta": "a"},
        chunk(5),  # type: ignore[arg-type]
        {"choices": [{"index": 0, "message": "a"}]},
        chunk({"tool_calls": {"a": 1}}),
        chunk({"tool_calls": ["a"]}),
        chunk({"tool_calls": [{"index": "0"}]}),
        chunk({"tool_calls": [{"index": 0, "function": "f"}]}),
        chunk({}, 5),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_chunk_is_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(AnswerInvalid):
        Assembler().add(odd)


TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.uuids().map(str),
            "type": st.just("function"),
            "function": st.fixed_dictionaries({"name": st.just("f"), "arguments": TEXT}),
        }
    ),
    max_size=3,
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": st.none() | TEXT},
    optional={
        "reasoning_content": st.none() | TEXT,
        "refusal": st.none() | TEXT,
        "tool_calls": st.none() | CALLS,
        "format": TEXT,
        "annotations": st.lists(st.fixed_dictionaries({"type": TEXT}), max_size=2),
        "function_call": st.fixed_dictionaries({"name": st.just("f"), "arguments": TEXT}),
    },
)
LOGPROBS = st.none() | st.fixed_dictionaries(
    {"content": st.lists(st.fixed_dictionaries({"token": TEXT}), min_size=1, max_size=2)}
)
CHOICES = st.lists(
    st.fixed_dictionaries(
        {"message": MESSAGE, "finish_reason": st.sampled_from(["stop", "length", "tool_calls"])},
        optional={"logprobs": LOGPROBS, "stop_reason": st.none() | st.integers()},
    ),
    min_size=1,
    max_size=3,
).map(lambda found: [{"index": index, **each} for index, each in enumerate(found)])
COMPLETION = st.fixed_dictionaries(
    {
        "id": st.just("chatcmpl-1"),
        "object": st.just("chat.completion"),
        "created": st.integers(0, 2**31),
        "model": st.just("m"),
        "choices": CHOICES,
    },
    optional={
        "usage": st.fixed_dictionaries({"total_tokens": st.integers(0, 9)}),
        "system_fingerprint": st.none() | st.just("fp"),
    },
)


@given(COMPLETION)
def test_what_is_played_and_put_together_is_as_before(completion: dict[str, Any]) -> None:
    check_whole(completion)
    chunks = [json.loads(to_bytes(each)) for each in play(completion)]
    assert all(each["object"] == "chat.completion.chunk" for each in chunks)
    assert assembled(chunks) == completion


@pytest.mark.parametrize(
    ("completion", "error"),
    [
        ({}, AnswerInvalid),
        ({"choices": []}, AnswerInvalid),
        ({"choices": [{"finish_reason": "stop"}]}, AnswerInvalid),
        ({"choices": [{"message": {"content": "a"}}]}, AnswerCut),
        ({"choices": [{"message": {"tool_calls": 5}, "finish_reason": "stop"}]}, AnswerInvalid),
        ({"choices": [{"message": {}, "finish_reason": ["stop"]}]}, AnswerInvalid),
    ],
)
def test_an_answer_in_one_piece_must_be_whole_too(
    completion: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        check_whole(completion)
