"""What a simulation showed, as a table or as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from flightsvc.checklist.simulate import NO_FAILURE, Played

TOTAL = "total"
_COLUMNS = (
    ("requests", "requests"),
    ("calls", "calls"),
    ("smaller", "smaller"),
    ("amplification", "amplification"),
    ("answered", "answered"),
    ("fallback", "fallback"),
    ("failed", "failed"),
    ("p50_ms", "p50 ms"),
    ("p99_ms", "p99 ms"),
    ("max_ms", "max ms"),
    ("waited_ms", "waited ms"),
)


def summary(played: Sequence[Played]) -> dict[str, Any]:
    """Numbers for each first failure and for all, and what held retries back.

    ``amplification`` is calls of any model a request; ``waited_ms`` the mean wait between them.
    """
    names = sorted({each.first for each in played}, key=lambda name: (name != NO_FAILURE, name))
    rows = {name: _row([each for each in played if each.first == name]) for name in names}
    rows[TOTAL] = _row(played)
    held_back = Counter(each.held_back for each in played if each.held_back)
    return {
        "codes": rows,
        "held_back": {"time": held_back["time"], "retry_budget": held_back["budget"]},
        "fallbacks": _actions(played, "fallback"),
        "beside_errors": _actions(played, "failed"),
    }


def text(found: dict[str, Any]) -> str:
    """The summary for people."""
    rows: dict[str, dict[str, Any]] = found["codes"]
    lines = [["first failure", *(title for _, title in _COLUMNS)]]
    lines += [[name, *(_shown(row[key]) for key, _ in _COLUMNS)] for name, row in rows.items()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in lines
    ]
    held = found["held_back"]
    return "\n".join(
        [
            *shown,
            "",
            f"Retries not made: {held['time']} for lack of time, "
            f"{held['retry_budget']} by the retry budget.",
            f"What stood in for an answer: {_counts(found['fallbacks'])}.",
            f"What was told beside an error: {_counts(found['beside_errors'])}.",
            "",
        ]
    )


def _actions(played: Sequence[Played], ended: str) -> dict[str, int]:
    found = Counter(each.action for each in played if each.ended == ended and each.action)
    return dict(sorted(found.items()))


def _counts(actions: dict[str, int]) -> str:
    return ", ".join(f"{count} {action}" for action, count in actions.items()) or "nothing"


def _row(played: Sequence[Played]) -> dict[str, Any]:
    count = len(played)
    latencies = sorted(each.latency_ms for each in played)
    calls, smaller = sum(each.calls for each in played), sum(each.smaller for each in played)
    return {
        "requests": count,
        "calls": calls,
        "smaller": smaller,
        "amplification": round((calls + smaller) / count, 3),
        **{how: sum(each.ended == how for each in played) for how in _ENDS},
        "p50_ms": _percentile(latencies, 50),
        "p99_ms": _percentile(latencies, 99),
        "max_ms": latencies[-1],
        "waited_ms": round(sum(each.waited_ms for each in played) / count),
    }


_ENDS = ("answered", "fallback", "failed")


def _percentile(ordered: Sequence[int], percent: int) -> int:
    """By nearest rank."""
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


def _shown(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
