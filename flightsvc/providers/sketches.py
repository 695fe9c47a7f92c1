"""What the simulated model says: one small function a stage.

Each takes the prompt and a number made from it (see :func:`flightsvc.providers.simulated.seed`)
and returns the model's text, in the language of the candidate's answer and marked as simulated.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from flightsvc.providers.base import Message
from flightsvc.providers.terms import is_chinese, key_terms, mentions, size

LABEL, LABEL_ZH = "[simulated]", "【模拟】"

#: An answer of so many words is as long as it need be.
FULL_LENGTH = 80

_REASONING = re.compile(
    r"\b(because|therefore|so that|first|second|then|finally|if|otherwise|for example|instead)\b"
    r"|因为|所以|因此|首先|其次|然后|最后|如果|否则|例如|比如|从而|但是|而不是|避免",
    re.IGNORECASE,
)


def plain_sketch(messages: tuple[Message, ...], seed: int) -> str:
    """A labelled text for a stage that has no sketch of its own."""
    asked = last_user_text(messages)
    number = seed % 10_000
    if is_chinese(asked):
        return f"{LABEL_ZH}这是一个模拟回答(编号 {number:04d}),没有调用任何模型。"
    return f"{LABEL} This is a simulated answer (number {number:04d}); no model was asked."


def evaluation_sketch(messages: tuple[Message, ...], seed: int) -> str:
    """A judgement of a candidate's answer, as the JSON text that the stage expects."""
    question, answer = question_and_answer(messages)
    terms = key_terms(question)
    missing = [term for term in terms if not mentions(answer, term)]
    covered = 1 - len(missing) / len(terms) if terms else 0.5
    score = _score(answer, covered, seed)
    logic_ok = score >= 45 and _REASONING.search(answer) is not None
    speak = _speak_chinese if is_chinese(answer) else _speak_english
    return json.dumps(
        {"score": score, "logic_ok": logic_ok, **speak(score, logic_ok, missing, seed)},
        ensure_ascii=False,
    )


def follow_up_sketch(messages: tuple[Message, ...], seed: int) -> str:
    """Whether one more question makes sense, and which, as the JSON text that the stage expects."""
    question, answer = question_and_answer(messages)
    judged = json.loads(evaluation_sketch(messages, seed))
    asked, needed = judged["follow_up_question"], judged["follow_up_needed"]
    missing = [term for term in key_terms(question) if not mentions(answer, term)]
    if is_chinese(answer):
        about = f"没有谈到「{missing[0]}」" if missing else "没有举出具体的例子"
        reason = f"{LABEL_ZH}回答{about}。" if needed else f"{LABEL_ZH}继续追问不会得到更多信息。"
    else:
        about = f"says nothing about “{missing[0]}”" if missing else "gives no concrete example"
        reason = f"The answer {about}." if needed else "One more question would show nothing new."
        reason = f"{LABEL} {reason}"
    return json.dumps(
        {"needed": needed, "question": asked, "reason": reason}, ensure_ascii=False
    )


def question_and_answer(messages: tuple[Message, ...]) -> tuple[str, str]:
    """The question and the candidate's answer inside a prompt.

    The stage's user message is a JSON object with both; any other text counts as the answer.
    """
    text = last_user_text(messages)
    try:
        material = json.loads(text)
    except (ValueError, RecursionError):
        material = None
    if not isinstance(material, dict):
        return "", text
    question = material.get("question", material.get("current_question", ""))
    return str(question), str(material.get("answer", ""))


def last_user_text(messages: tuple[Message, ...]) -> str:
    """The text of the newest message of the user; empty if there is none."""
    return next((each.content for each in reversed(messages) if each.role == "user"), "")


def _score(answer: str, covered: float, seed: int) -> int:
    """0–100: half for what is covered, a third for length, the rest for reasoning and luck."""
    length = min(1.0, math.log1p(size(answer)) / math.log1p(FULL_LENGTH))
    reasons = min(1.0, len(set(_REASONING.findall(answer.lower()))) / 3)
    substance = length * (0.4 + 0.6 * covered)  # a long answer to another question is not good
    return round(min(98.0, 55 * substance + 25 * covered * length + 12 * reasons + seed % 7))


def _speak_english(score: int, logic_ok: bool, missing: list[str], seed: int) -> dict[str, Any]:
    points = [f"Nothing is said about “{term}”" for term in missing[:3]]
    praise = _pick(
        seed,
        score,
        ["The answer covers the heart of the question", "A solid answer that names what matters"],
        ["The answer goes in the right direction", "The basics are there"],
        ["The answer stays on the surface", "The answer hardly touches the question"],
    )
    reasoning = (
        "the steps follow from each other" if logic_ok else "the reasoning needs more connection"
    )
    advice = (
        f"Next time, also speak about {_join(missing[:3], ', ', ' and ')}."
        if missing
        else "A concrete number or an incident from your own work would make it stronger."
    )
    about = missing[seed % len(missing)] if missing else None
    question = (
        f"How would you deal with “{about}” in your own system?"
        if about
        else "What would you measure to see whether it works in production?"
    )
    return _judgement(f"{LABEL} {praise}; {reasoning}. {advice}", points, score, question)


def _speak_chinese(score: int, logic_ok: bool, missing: list[str], seed: int) -> dict[str, Any]:
    points = [f"没有谈到「{term}」" for term in missing[:3]]
    praise = _pick(
        seed,
        score,
        ["回答抓住了问题的核心", "回答扎实,关键点都提到了"],
        ["回答的方向是对的", "基本概念已经讲到"],
        ["回答停留在表面", "回答与问题的联系不够"],
    )
    reasoning = "各步骤之间衔接清楚" if logic_ok else "推理过程还需要说得更连贯"
    advice = (
        f"建议补充{_join([f'「{term}」' for term in missing[:3]], '、', '和')}。"
        if missing
        else "如果能给出具体数据或亲身经历的案例,会更有说服力。"
    )
    about = missing[seed % len(missing)] if missing else None
    question = (
        f"在你自己的系统里,「{about}」具体是怎么处理的?"
        if about
        else "上线之后,你会看哪些指标来判断它是否有效?"
    )
    return _judgement(f"{LABEL_ZH}{praise},{reasoning}。{advice}", points, score, question)


def _judgement(feedback: str, points: list[str], score: int, question: str) -> dict[str, Any]:
    needed = 25 <= score < 80  # the very good need none, the very weak gain nothing from one
    return {
        "missing_points": points,
        "feedback": feedback,
        "follow_up_needed": needed,
        "follow_up_question": question if needed else None,
    }


def _pick(seed: int, score: int, good: list[str], fair: list[str], weak: list[str]) -> str:
    kind = good if score >= 75 else fair if score >= 45 else weak
    return kind[seed // 7 % len(kind)]


def _join(words: list[str], comma: str, last: str) -> str:
    return last.join(filter(None, [comma.join(words[:-1]), *words[-1:]]))
