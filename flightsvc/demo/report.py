"""The demo's words: plain text, 80 columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from flightsvc.demo.load import Asked
from flightsvc.demo.samples import IDENTICAL
from flightsvc.demo.tally import Round, Row, by_worker

Columns = Mapping[str, tuple[str, int]]

WIDTH = 80
#: the columns of the roles: heading and width; those of the second line only where they occur
_ALWAYS = {
    "owner": ("owner", 6),
    "follower": ("follower", 9),
    "replay": ("replay", 7),
    "l1": ("L1", 4),
}
_SOMETIMES = {"local": ("local", 6), "error": ("error", 6)}
_LEGEND = """\
owner     made the one call of the model, in a worker
follower  waited for that call, in the same worker or another
replay    came later: the worker read the stored answer from Valkey
L1        came later: the worker had the answer in its own memory
calls     of the model, as the model server counted them
"""
_LEGEND_LOCAL = "local     made the call or waited for it, in a worker for itself\n"


def table(rounds: Sequence[Round], served_by: Mapping[str, int]) -> str:
    """One line for each kind of request in each round, and the sums, by worker too."""
    asked = [each for one in rounds for each in one.asked]
    total = Row("all", asked, sum(sum(one.calls.values()) for one in rounds))
    columns = _ALWAYS | {role: _SOMETIMES[role] for role in _SOMETIMES if total.roles[role]}
    heading = {role: title for role, (title, _) in columns.items()}
    lines = [_line("", "asked", heading, columns, "calls", "p50", "p99")]
    for one in rounds:
        lines += [one.name, *(_row(row, columns) for row in one.rows())]
    sums = (total, *by_worker(asked, served_by))
    lines += ["together", *(_row(row, columns, timed=False) for row in sums)]
    return "\n".join(lines) + "\n"


def legend(rounds: Sequence[Round]) -> str:
    """What the columns are."""
    local = any(each.role == "local" for one in rounds for each in one.asked)
    return _LEGEND + (_LEGEND_LOCAL if local else "")


def savings(rounds: Sequence[Round], call_s: float) -> str:
    """What was saved.

    :param call_s: time that the model takes for one call, in seconds.
    """
    asked = sum(len(one.asked) for one in rounds)
    calls = sum(sum(one.calls.values()) for one in rounds)
    saved = asked - calls
    return (
        f"Asked {asked} times, the model was called {calls} times. Saved: {saved} calls "
        f"({100 * saved / asked:.0f} %),\nthat is {saved * call_s:.1f} s of model time "
        f"at {call_s:g} s a call."
    )


def excerpt(asked: Sequence[Asked]) -> str:
    """The answer that many asked about, and how it was judged."""
    replies = (each.reply for each in asked if each.sample == IDENTICAL and each.role != "error")
    reply = next(replies, None)
    if reply is None:
        return ""
    judged = reply.json()
    lines = [
        "One of the judged answers",
        _cut(f"  question  {IDENTICAL.question}"),
        _cut(f"  answer    {IDENTICAL.answer}"),
        _cut(f"  score     {judged['score']}"),
        _cut(f"  feedback  {judged['feedback']}"),
    ]
    return "\n".join(lines) + "\n"


def one_line(text: str) -> str:
    """A text without line ends."""
    return " ".join(text.split())


def _row(row: Row, columns: Columns, *, timed: bool = True) -> str:
    counts = {role: str(row.roles[role]) for role in columns}
    calls = "" if row.calls is None else str(row.calls)
    times = [_time(row.latency_s(share)) for share in (0.5, 0.99)] if timed else []
    return _line("  " + row.name, str(len(row.asked)), counts, columns, calls, *times)


def _line(
    name: str, asked: str, roles: Mapping[str, str], columns: Columns, calls: str, *times: str
) -> str:
    middle = "".join(roles[role].rjust(width) for role, (_, width) in columns.items())
    end = "".join(time.rjust(8) for time in times)
    return f"{name:14}{asked:>6}{middle}{calls:>6}{end}".rstrip()


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _cut(text: str) -> str:
    """As much of a text as fits a line; Chinese characters are two columns wide."""
    room = WIDTH
    for at, character in enumerate(text):
        room -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if room < 1 and at + 1 < len(text):
            return text[:at] + "…"
    return text
