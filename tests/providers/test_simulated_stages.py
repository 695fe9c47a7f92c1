"""What the simulated model says in the other stages: it fits, and it depends on what is asked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightsvc.interview import demeanor, extraction, follow_up
from flightsvc.interview.results import read_result
from flightsvc.providers import Message, ModelFile, ModelRequest
from flightsvc.providers.simulated import simulated_text

RESUME = "Five years of backend work: an order service with Redis and Kafka, MySQL sharding."
RESUME_ZH = "五年后端开发经验，负责订单服务，使用 Redis 和消息队列，做过分库分表。"


def said(stage: str, material: dict[str, Any], file: ModelFile | None = None) -> str:
    messages = (Message("user", json.dumps(material, ensure_ascii=False)),)
    return simulated_text(ModelRequest(messages, stage, file=file))


@pytest.mark.parametrize(
    ("question", "answer", "label"),
    [
        ("What does a rate limiter cost?", "It costs a little time.", "[simulated]"),
        ("Redis 分布式锁怎么续期？", "用看门狗线程续期。", "【模拟】"),
    ],
)
def test_a_follow_up_speaks_the_language_of_the_answer(
    question: str, answer: str, label: str
) -> None:
    text = said("follow_up", {"current_question": question, "answer": answer})
    assert read_result(text, follow_up.FollowUp).reason.startswith(label)


@given(st.text(), st.text())
def test_any_answer_gets_a_follow_up_decision_that_fits(question: str, answer: str) -> None:
    text = said("follow_up", {"current_question": question, "answer": answer})
    found = read_result(text, follow_up.FollowUp)
    assert found.needed is (found.question is not None)


@pytest.mark.parametrize(
    ("resume", "label", "term"),
    [(RESUME, "[simulated]", "Redis"), (RESUME_ZH, "【模拟】", "Redis")],
)
def test_questions_come_from_the_resume(resume: str, label: str, term: str) -> None:
    text = said("extraction", {"resume": resume, "question_count": 20})
    found = read_result(text, extraction.Extraction)
    assert found.questions[0].startswith(label)
    assert found.suggestions[0].startswith(label)
    assert any(term in question for question in found.questions)
    assert found.interview_type == "backend"
    longer = said("extraction", {"resume": resume * 10, "question_count": 20})
    assert read_result(longer, extraction.Extraction).resume_score > found.resume_score


@given(st.text(), st.one_of(st.integers(), st.text()))
def test_any_resume_gets_questions_that_fit(resume: str, count: int | str) -> None:
    text = said("extraction", {"resume": resume, "question_count": count})
    found = read_result(text, extraction.Extraction)
    assert len(found.questions) <= (count if isinstance(count, int) and 1 <= count <= 30 else 30)


@given(st.binary(max_size=50))
def test_any_picture_gets_levels_in_the_scale_of_100(content: bytes) -> None:
    file = ModelFile("picture.png", "image/png", content)
    found = read_result(said("demeanor", {"task": "Judge."}, file), demeanor.Demeanor)
    assert max(found.model_dump().values()) > 10


def test_two_pictures_are_judged_differently_and_one_always_alike() -> None:
    files = [ModelFile("picture.png", "image/png", bytes([n])) for n in (1, 2, 1)]
    one, two, again = (said("demeanor", {"task": "Judge."}, file) for file in files)
    assert one != two
    assert one == again
