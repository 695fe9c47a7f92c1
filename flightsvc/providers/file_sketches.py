"""What the simulated model says about files: a résumé's text, a picture that it does not see."""

from __future__ import annotations

import json

from flightsvc.providers.base import Message
from flightsvc.providers.sketches import LABEL, LABEL_ZH, last_user_text
from flightsvc.providers.terms import is_chinese, key_terms, size

#: A résumé of so many words says enough.
FULL_RESUME = 400

#: word of a résumé → the kind of interview
_KINDS = {
    "backend": ("redis", "mysql", "postgres", "kafka", "spring", "django", "golang", "后端"),
    "frontend": ("react", "vue", "typescript", "css", "webpack", "前端"),
    "algorithm": ("pytorch", "tensorflow", "transformer", "nlp", "算法", "机器学习"),
    "testing": ("selenium", "pytest", "junit", "测试"),
    "product": ("roadmap", "product manager", "产品经理"),
}


def extraction_sketch(messages: tuple[Message, ...], seed: int) -> str:
    """Questions from a résumé, as the JSON text that the stage expects."""
    resume, wanted = _resume(messages)
    terms = key_terms(resume, most=30)
    chinese = is_chinese(resume)
    asked = _questions_zh(terms, seed) if chinese else _questions(terms, seed)
    suggestions = (
        [f"{LABEL_ZH}为每个项目补充可量化的结果。", "写明你个人负责的部分。"]
        if chinese
        else [f"{LABEL} Give each project a result in numbers.", "Say which part was your own."]
    )
    length = min(1.0, size(resume) / FULL_RESUME)
    return json.dumps(
        {
            "questions": asked[: max(1, wanted)],
            "suggestions": suggestions,
            "resume_score": round(35 + 50 * length + seed % 11),
            "interview_type": _kind(resume),
        },
        ensure_ascii=False,
    )


def demeanor_sketch(_messages: tuple[Message, ...], seed: int) -> str:
    """Levels for a picture, as the JSON text that the stage expects."""
    panic, serious, face = 10 + seed % 40, 55 + seed // 40 % 40, 50 + seed // 1_600 % 45
    return json.dumps(
        {
            "panic_level": panic,
            "seriousness_level": serious,
            "emoticon_handling": face,
            "composite_score": round((100 - panic + serious + face) / 3),
        }
    )


def _resume(messages: tuple[Message, ...]) -> tuple[str, int]:
    """The résumé's text inside a prompt, and how many questions are wanted."""
    text = last_user_text(messages)
    try:
        material = json.loads(text)
    except (ValueError, RecursionError):
        material = None
    if not isinstance(material, dict):
        return text, 8
    wanted = str(material.get("question_count", ""))
    return str(material.get("resume", "")), int(wanted) if wanted in map(str, range(1, 31)) else 8


def _questions(terms: list[str], seed: int) -> list[str]:
    forms = (
        "What did you build with {}, and what would you do differently today?",
        "How does {} behave when a machine fails?",
        "Which problem with {} took you longest, and how did you find its cause?",
    )
    asked = [forms[(seed + at) % 3].format(term) for at, term in enumerate(terms)]
    return [f"{LABEL} Tell me about the project that you are proudest of.", *asked]


def _questions_zh(terms: list[str], seed: int) -> list[str]:
    forms = (
        "你用「{}」做过什么？现在会怎样改进？",
        "机器故障时，「{}」会怎样？你如何应对？",
        "关于「{}」，哪个问题花了你最长时间？原因是怎样找到的？",
    )
    asked = [forms[(seed + at) % 3].format(term) for at, term in enumerate(terms)]
    return [f"{LABEL_ZH}请介绍一个你最满意的项目。", *asked]


def _kind(resume: str) -> str:
    lowered = resume.lower()
    hits = {kind: sum(word in lowered for word in words) for kind, words in _KINDS.items()}
    best = max(hits, key=lambda kind: hits[kind])
    return best if hits[best] else "general"
