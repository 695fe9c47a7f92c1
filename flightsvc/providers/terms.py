"""Rough reading of Chinese and English text: its language, and the terms that carry it."""

from __future__ import annotations

import re

_HAN = re.compile(r"[\u3400-\u9fff]+")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9+#.-]*[A-Za-z0-9+#]|[A-Za-z]")
_ENGLISH_RUN = re.compile(rf"(?:{_WORD.pattern})(?:\s+(?:{_WORD.pattern}))*")
_CLAUSE_END = re.compile(r"[,.;:!?()\n]\s|[,。;:!?、()]")

#: Words of a question that say nothing about its subject.
_CHINESE_FILLERS = re.compile(
    "请你?|如何|怎么样?|怎样|什么|为什么|为何|哪些|哪个|哪种|哪里|多少|是否|能否|可以|可能|一下|一个|一种"
    "|说说|谈谈|描述|介绍|解释|简述|说明|分析|比较|举例|例如|比如|以及|并且|或者|还是|如果|那么|因为|所以"
    "|时候|情况下?|过程中?|你们?|我们?|他们?|它们?|自己|项目|问题|需要|应该|进行|使用|实现|保证|避免|处理"
    "|解决|设计|发生|出现|常见|了解|理解|认为|区别|作用|原理|这个|那个|有没有|会不会|做过|用过"
    "|要(?!求)|用(?!户|例)|会(?!话|员|议)|能(?!力)|从(?!库)|对(?!象|称|账)|中(?!间|心)|上(?!游|传|线|下)"
    "|下(?!游|单|载)|时(?!间|延|钟|区)|后(?!端|台)|前(?!端|缀)|地(?!址)|并(?!发|行)|有(?!序)|以(?!太)"
    "|为|把|被|让|给|到|在|与|和|及|的|得|了|吗|呢|吧|是|里|且|或|也|都|就|还|再|又|这|那|其"
)
_ENGLISH = (
    "a about above after all also an and any are as at be because been before being between both "
    "but by can could describe design did difference do does doing done each either else etc "
    "example explain few for from give had happen happens has have having how i if in into is it "
    "its just kind let like list made make makes many may me might more most much must my need no "
    "nor not of on one only or other our out over own please project public same should show so "
    "some such take talk tell than that the their them then there these they thing things this "
    "those through to too under until up us use used using very want was we were what when where "
    "which while who why will with work would you your yours"
)
_ENGLISH_FILLERS = frozenset(_ENGLISH.split())


def is_chinese(text: str) -> bool:
    """Whether a text reads as Chinese: one Han character weighs as much as a short word."""
    return sum(map(len, _HAN.findall(text))) > len(_WORD.findall(text))


def size(text: str) -> int:
    """The length of a text in words; a Chinese word has about two characters."""
    return sum(map(len, _HAN.findall(text))) // 2 + len(_WORD.findall(text))


def key_terms(question: str, most: int = 8) -> list[str]:
    """What a question is about: its terms in their order, without repetition.

    English words that stand side by side make one term ("rate limiter").

    :param most: at most as many terms.
    """
    terms: dict[str, str] = {}
    for clause in _CLAUSE_END.split(question):
        for run in re.finditer(f"{_HAN.pattern}|{_ENGLISH_RUN.pattern}", clause):
            found = run.group()
            split = _chinese_terms if _HAN.match(found) else _english_terms
            for term in split(found):
                terms.setdefault(term.lower(), term)
    return list(terms.values())[:most]


def mentions(text: str, term: str) -> bool:
    """Whether a text speaks of a term, in the same or a similar form."""
    lowered = text.lower()
    if term.lower() in lowered:
        return True
    if _HAN.match(term):
        parts = [term[at : at + 2] for at in range(len(term) - 1)]
    else:
        parts = [_stem(word) for word in term.split()]
    return 2 * sum(part in lowered for part in parts) > len(parts)


def _chinese_terms(run: str) -> list[str]:
    return [piece for piece in _CHINESE_FILLERS.split(run) if 2 <= len(piece) <= 12]


def _english_terms(run: str) -> list[str]:
    """The runs of words between the fillers."""
    kept = [word if word.lower() not in _ENGLISH_FILLERS else "," for word in run.split()]
    return [term for term in map(str.strip, " ".join(kept).split(",")) if len(term) > 1]


def _stem(word: str) -> str:
    """An English word without its commonest endings."""
    word = word.lower()
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
