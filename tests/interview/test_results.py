"""From a model's text to a checked object, or to AnswerInvalid."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightsvc.errors import AnswerInvalid
from flightsvc.interview.evaluation import Evaluation
from flightsvc.interview.results import MAX_TEXT, find_object, read_result

GOOD: dict[str, Any] = {
    "score": 72,
    "logic_ok": True,
    "missing_points": ["为什么需要 fencing token"],
    "feedback": "Right about the lease; the clock is missing.",
    "follow_up_needed": True,
    "follow_up_question": "What if the old owner wakes up?",
}


@pytest.mark.parametrize(
    "frame",
    [
        "{}",
        "```json\n{}\n```",
        "```\n{}\n```",
        "Here is my judgement:\n\n{}\n\nI hope this helps.",
        "用 {{占位符}} 说明：{}".replace("{{", "{ ").replace("}}", " ").replace("{}", "{}"),
        "\ufeff{}",
        "<think>set {a, b} comes first</think>{}",
    ],
)
def test_fences_and_prose_around_one_object_are_tolerated(frame: str) -> None:
    text = frame.replace("{}", json.dumps(GOOD, ensure_ascii=False))

    assert read_result(text, Evaluation).model_dump() == GOOD


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("I cannot judge this.", "no JSON object"),
        ("[1, 2, 3]", "no JSON object"),
        (json.dumps(GOOD)[:-20], "no JSON object"),
        ("{" * 100_000, "no JSON object"),
        ('{"a":' * 100_000, "no JSON object"),
        ('{"score": NaN}', "no JSON object"),
        ('{"score": 1, "score": 100}', "no JSON object"),
        (json.dumps(GOOD) + json.dumps({**GOOD, "score": 100}), "more than one JSON object"),
        ("x" * (MAX_TEXT + 1), "longer than"),
        ('{"error": {"code": 1001}}', "does not fit"),
    ],
)
def test_other_texts_are_no_answer(text: str, reason: str) -> None:
    with pytest.raises(AnswerInvalid, match=reason):
        read_result(text, Evaluation)


@pytest.mark.parametrize(
    "change",
    [
        {"score": -1},
        {"score": 100.5},
        {"score": "72"},
        {"score": True},
        {"score": None},
        {"logic_ok": "yes"},
        {"logic_ok": 1},
        {"missing_points": "none"},
        {"missing_points": [1]},
        {"missing_points": [""]},
        {"feedback": ""},
        {"feedback": "  \n"},
        {"feedback": "half a pair \ud800"},
        {"follow_up_question": None},
        {"follow_up_question": "  "},
        {"reasoning": "a field that nobody asked for"},
    ],
    ids=str,
)
def test_what_does_not_fit_the_schema_is_no_answer(change: dict[str, Any]) -> None:
    with pytest.raises(AnswerInvalid, match="does not fit"):
        read_result(json.dumps({**GOOD, **change}), Evaluation)


@pytest.mark.parametrize("missing", sorted(GOOD))
def test_no_field_may_be_missing(missing: str) -> None:
    rest = {name: value for name, value in GOOD.items() if name != missing}

    with pytest.raises(AnswerInvalid, match=missing):
        read_result(json.dumps(rest), Evaluation)


@pytest.mark.parametrize("score", [0, 100, 72.5])
def test_the_bounds_of_the_score_belong_to_it(score: float) -> None:
    assert read_result(json.dumps({**GOOD, "score": score}), Evaluation).score == score


def test_without_a_follow_up_a_blank_question_is_none() -> None:
    text = json.dumps({**GOOD, "follow_up_needed": False, "follow_up_question": " "})

    assert read_result(text, Evaluation).follow_up_question is None


def test_the_error_quotes_nothing_of_the_text() -> None:
    secret = "SECRET-4711"
    bad = {**GOOD, "score": secret, "feedback": 3, secret: secret}

    with pytest.raises(AnswerInvalid) as failed:
        read_result(json.dumps(bad), Evaluation)

    assert secret not in str(failed.value)
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__


@given(st.text(max_size=300))
def test_any_text_gives_an_object_or_the_named_error(text: str) -> None:
    with suppress(AnswerInvalid):
        assert isinstance(find_object(text), dict)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from([*GOOD, "other"]), inner, max_size=6)
        ),
        max_leaves=20,
    )
)
def test_any_json_fits_or_gives_the_named_error(value: object) -> None:
    with suppress(AnswerInvalid):
        read_result(json.dumps(value), Evaluation)
