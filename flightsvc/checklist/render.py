"""The list as tables for reviewers: Markdown here, the page in :mod:`flightsvc.checklist.page`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flightsvc.checklist import words
from flightsvc.checklist.model import Checklist, Code
from flightsvc.checklist.rules import Rule
from flightsvc.checklist.words import Words

HEADS = (
    Words("code", "错误码"),
    Words("when", "典型场景"),
    Words("reaches", "影响"),
    Words("from", "根因"),
    Words("retry", "重试"),
    Words("instead", "兜底动作"),
    Words("the user is told", "用户提示"),
    Words("state", "状态变更"),
    Words("alert", "告警"),
    Words("a person", "人工介入"),
)
RULE_HEADS = (Words("seen", "现象"), Words("provider", "来源"), Words("code", "错误码"))


def cells(code: Code) -> tuple[Words, ...]:
    """What stands in each column, in the order of :data:`HEADS`."""
    reaches = words.LEVELS[code.level]
    told = Words(code.message_en, code.message_zh)
    return (
        Words(code.name, code.name),
        Words(code.about_en, code.about_zh),
        Words(f"{code.level}, {reaches.en}", f"{code.level} {reaches.zh}"),
        words.CAUSES[code.cause],
        words.retry(code),
        words.fallback(code.fallback),
        told if code.user_sees else Words("(not shown)", "（用户无感知）"),
        words.state(code.state),
        words.alert(code.alert),
        words.person(code),
    )


def rule_cells(rule: Rule) -> tuple[str, str, str]:
    """What a rule looks at, the provider, and the code."""
    seen = [
        *([f"error {_any(rule.exceptions)}"] if rule.exceptions else []),
        *([f"own code {_any(rule.codes)}"] if rule.codes else []),
        *([f"HTTP {_any(rule.statuses)}"] if rule.statuses else []),
        *([f"provider's code {_any(rule.upstream_codes)}"] if rule.upstream_codes else []),
        *([f"message like {rule.text.pattern}"] if rule.text else []),
    ]
    return "; ".join(seen), rule.provider or "any", rule.to


def markdown(checklist: Checklist) -> str:
    """Both tables, in both languages."""
    return "\n".join(
        [
            *_table(map(_both, HEADS), ([_both(cell) for cell in cells(c)] for c in checklist)),
            "",
            *_table(
                map(_both, RULE_HEADS),
                ([_escaped(part) for part in rule_cells(r)] for r in checklist.classifier.rules),
            ),
            "",
        ]
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    first = list(heads)
    yield f"| {' | '.join(first)} |"
    yield "|---" * len(first) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _both(cell: Words) -> str:
    if cell.en == cell.zh:
        return _escaped(cell.en)
    return f"{_escaped(cell.zh)}<br>{_escaped(cell.en)}"


def _escaped(text: str) -> str:
    for sign in "\\|<>*_`[]":
        text = text.replace(sign, f"\\{sign}")
    return text


def _any(values: Iterable[str]) -> str:
    """Values in order; numbers that follow each other as a range."""
    numbers = sorted(int(value) for value in values if value.isdecimal())
    texts = sorted(value for value in values if not value.isdecimal())
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    said = [str(low) if low == high else f"{low}–{high}" for low, high in spans]
    return ", ".join([*said, *texts])
