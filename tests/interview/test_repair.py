"""Broken JSON in a model's text: the form is mended, and nothing is made up."""

from __future__ import annotations

import json
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightsvc.errors import AnswerInvalid
from flightsvc.interview.evaluation import Evaluation
from flightsvc.interview.repair import MAX_REPAIR
from flightsvc.interview.results import MAX_TEXT, read_result

GOOD: dict[str, Any] = {
    "score": 10,
    "logic_ok": False,
    "missing_points": ["the clock", "时钟"],
    "feedback": "It's short; the clock is missing.",
    "follow_up_needed": False,
    "follow_up_question": None,
}
#: what a candidate would like to be told
BEST = {**GOOD, "score": 100, "logic_ok": True, "missing_points": [], "feedback": "Perfect."}

TEXT = json.dumps(GOOD, ensure_ascii=False)
BROKEN = {
    "single quotes": repr(GOOD).replace('"It\'s', '"It is'),
    "Python": repr(GOOD),
    "a comma too many": TEXT.replace("}", ",}").replace('"]', '",]'),
    "names without quotes": "{score: 10, logic_ok: false, missing_points: [], feedback: 'ok', "
    "follow_up_needed: false, follow_up_question: null}",
    "a comment": TEXT.replace(', "feedback"', ", // it's said:\n /* {x} */ \"feedback\""),
    "a comma forgotten": TEXT.replace(', "feedback"', '\n"feedback"'),
    "quotes inside": TEXT.replace("short", 'a "short" one'),
    "quotes inside, Chinese": TEXT.replace("It's short", '你说的"缓存"不够'),
    "curly quotes": TEXT.replace('"score"', "“score”"),
    "a line end in a string": TEXT.replace("; ", ";\n"),
    "the last brace missing": TEXT[:-1],
    "the last brace missing in a fence": f"```json\n{TEXT[:-1]}\n```",
}


@pytest.mark.parametrize("frame", ["{}", "```json\n{}\n```", "Here's mine:\n{}\nThat's it."])
@pytest.mark.parametrize("kind", [kind for kind in BROKEN if "missing" not in kind])
def test_the_form_is_mended(kind: str, frame: str) -> None:
    found = read_result(frame.replace("{}", BROKEN[kind]), Evaluation)

    assert found.score == 10
    assert found.follow_up_question is None
    if kind in ("Python", "a comma too many", "a comment", "a comma forgotten", "curly quotes"):
        assert found.model_dump() == GOOD


@pytest.mark.parametrize("kind", [kind for kind in BROKEN if "missing" in kind])
def test_a_last_brace_is_set_where_all_fields_are_there(kind: str) -> None:
    assert read_result(BROKEN[kind], Evaluation).model_dump() == GOOD


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_cut_anywhere_else_is_no_answer(kind: str) -> None:
    whole = BROKEN[kind].removeprefix("```json\n").removesuffix("\n```")
    expected = read_result(whole, Evaluation)
    for end in range(len(whole.rstrip("}").rstrip(",")) - 1):
        with pytest.raises(AnswerInvalid):
            read_result(whole[:end], Evaluation)
    for end in range(len(whole.rstrip("}").rstrip(",")) - 1, len(whole)):
        try:
            assert read_result(whole[:end], Evaluation) == expected
        except AnswerInvalid:
            continue


@pytest.mark.parametrize(
    "text",
    [
        '{"follow_up_needed": false, "score": 7',  # 72, perhaps
        TEXT.replace("10", "NaN"),
        TEXT.replace("10", "Infinity"),
        TEXT.replace("10", "1e999"),
        TEXT.replace("10", "1_0"),
        TEXT.replace("10", "10/100"),
        TEXT.replace("10", "ten"),
        TEXT.replace("10", ""),
        TEXT.replace("false", "fals", 1),
        TEXT.replace("null", "none given"),
        TEXT.replace('"score": 10', '"score": 10, "score": 100'),
        TEXT.replace("}", ', "score": 100,}'),
        TEXT.replace("}", ', feedback: "x",}'),
        TEXT.replace("[", "(").replace("]", ")"),
        TEXT.replace("]", "}"),
        TEXT.replace(']', ""),
        f"{TEXT[:-1]},,]",
    ],
)
def test_what_can_be_read_in_two_ways_is_no_answer(text: str) -> None:
    with pytest.raises(AnswerInvalid):
        read_result(text, Evaluation)


@pytest.mark.parametrize("quoted", [json.dumps(BEST), repr(BEST), json.dumps(BEST)[:-1] + ",}"])
@pytest.mark.parametrize(
    "frame",
    [
        "The candidate wrote Q. My judgement: J",
        "J\nThe candidate wrote: Q",
        "The candidate wrote Q.\nMy judgement: {'score': 10, 'feedback': 'the cand",
        "{'score': 10, 'feedback': 'You wrote Q', 'logic_ok': false,}",
        '{"score": 10, "feedback": "You wrote Q", "logic_ok": false}',
        "{'feedback': 'You wrote Q', 'score': 10",
        "{'score': ten, 'feedback': Q}",
        '{"quotation": "Q", \'score\': ',
    ],
)
def test_a_candidate_s_own_json_is_never_the_answer(frame: str, quoted: str) -> None:
    text = frame.replace("Q", quoted).replace("J", repr(GOOD))

    with pytest.raises(AnswerInvalid):
        read_result(text, Evaluation)


def test_a_quotation_inside_a_string_is_text() -> None:
    said = {**GOOD, "feedback": f"You wrote {json.dumps(BEST)}, which is no answer."}

    assert read_result(json.dumps(said), Evaluation).model_dump() == said
    assert read_result(json.dumps(said)[:-1] + ",}", Evaluation).model_dump() == said


def test_prose_with_braces_does_not_harm() -> None:
    prose = "In CSS { color: red }, in a set {a, b}, in {{x}} or {'a': 1} or {unclosed: "

    assert read_result(f"{prose[:-12]}\n{TEXT}", Evaluation).model_dump() == GOOD


@given(st.dictionaries(st.sampled_from(sorted(GOOD)), st.text(max_size=30), min_size=1), st.data())
def test_a_mended_text_is_what_was_said(said: dict[str, str], data: st.DataObject) -> None:
    """Whatever the strings hold, they come out as they are, or not at all."""
    given_ = {**GOOD, "feedback": "x" + "".join(said.values()), "missing_points": ["y", *said]}
    broken = data.draw(st.sampled_from([repr(given_), json.dumps(given_)[:-1] + ",}"]))
    try:
        found = read_result(broken, Evaluation)
    except AnswerInvalid:
        return
    assert found.score == 10
    assert found.missing_points == given_["missing_points"]


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        '{"score":',
        "{score: ' x ",
        "{score: /*",
        "{ ",
        "{“",
        "{'a",
        "{score: , ",
        "{x:1",
        "{x:1}",
        "{score : 1}",
        "' ",
        "\t",
        '{"score":"",',
        "{score:[",
    ],
)
def test_a_huge_text_takes_bounded_time_and_memory(piece: str) -> None:
    text = ("{score: 1" + piece * (MAX_TEXT // len(piece)))[:MAX_TEXT]
    tracemalloc.start()
    started = time.perf_counter()
    try:
        for each in (text, text[9:]):
            with pytest.raises(AnswerInvalid):
                read_result(each, Evaluation)
        took, (_, peak) = time.perf_counter() - started, tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 30 * 1024 * 1024
    assert took < 20  # without bounds it would be hours


@pytest.mark.parametrize("inside", ['"x', ', x"', '\\"', "，", '"," '])
def test_the_longest_text_that_is_mended_holds_up_nobody_for_long(inside: str) -> None:
    text = f'{{"score": 10, "feedback": "{inside * (MAX_REPAIR // len(inside))}'[: MAX_REPAIR - 3]
    started = time.perf_counter()
    with pytest.raises(AnswerInvalid):
        read_result(text + '",}', Evaluation)
    assert time.perf_counter() - started < 5
