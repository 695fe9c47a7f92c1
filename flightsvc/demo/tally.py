"""Counting what was asked and what the model saw, and holding it against what was promised."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from flightsvc.demo.load import Asked
from flightsvc.demo.samples import IDENTICAL

#: calls of the model by sample, as the model server counted them
Calls = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Row:
    """Some of the requests, counted.

    :param calls: calls of the model for them; None where they cannot be told apart.
    """

    name: str
    asked: Sequence[Asked]
    calls: int | None

    @property
    def roles(self) -> Counter[str]:
        """How many answers came about in which way."""
        return Counter(each.role for each in self.asked)

    def latency_s(self, share: float) -> float:
        """The latency that a share of the requests did not exceed, in seconds (nearest rank)."""
        ordered = sorted(each.latency_s for each in self.asked)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True, slots=True)
class Round:
    """All requests that were sent at one time, and the model's calls meanwhile."""

    name: str
    asked: Sequence[Asked]
    calls: Calls

    def rows(self) -> list[Row]:
        """The identical requests and the others, where there are such."""
        same = [each for each in self.asked if each.sample == IDENTICAL]
        other = [each for each in self.asked if each.sample != IDENTICAL]
        for_same = self.calls.get(IDENTICAL.name, 0)
        rows = [
            Row(f"{len(same)} identical", same, for_same),
            Row(f"{len(other)} different", other, sum(self.calls.values()) - for_same),
        ]
        return [row for row in rows if row.asked]


def by_worker(asked: Sequence[Asked], served_by: Mapping[str, int]) -> list[Row]:
    """The requests by the worker process that answered them."""
    pids = sorted({served_by[each.request_id] for each in asked if each.request_id in served_by})
    return [
        Row(
            f"in worker {number}",
            [each for each in asked if served_by.get(each.request_id) == pid],
            None,
        )
        for number, pid in enumerate(pids, 1)
    ]


def broken_promises(rounds: Sequence[Round]) -> Iterator[str]:
    """A sentence for everything that is not as promised; nothing if all is well.

    Promised is: every request is answered, equal requests alike; in the first round each
    distinct answer is one call, made by one owner; after that the model is not called.
    """
    for number, each in enumerate(rounds):
        yield from _unanswered(each)
        yield from _unlike(each)
        yield from _calls(each, 0 if number else 1)


def _unanswered(each: Round) -> Iterator[str]:
    failed = [asked for asked in each.asked if asked.role == "error"]
    if failed:
        yield f"{each.name}: {len(failed)} of {len(each.asked)} got no answer ({_why(failed[0])})"


def _why(asked: Asked) -> str:
    if asked.reply is None:
        return asked.error
    try:
        code = json.loads(asked.reply.body).get("code", "no code")
    except ValueError:
        code = "no problem document"
    return f"HTTP {asked.reply.status}, {code}"


def _unlike(each: Round) -> Iterator[str]:
    answers: dict[str, set[bytes]] = {}
    for asked in each.asked:
        if asked.reply is not None and asked.role != "error":
            answers.setdefault(asked.sample.name, set()).add(asked.reply.body)
    for name, bodies in answers.items():
        if len(bodies) > 1:
            yield f"{each.name}: answer {name} was judged in {len(bodies)} different ways"


def _calls(each: Round, wanted: int) -> Iterator[str]:
    names = dict.fromkeys(asked.sample.name for asked in each.asked)
    calls = {name: each.calls.get(name, 0) for name in names}
    yield from _others(each.name, calls, wanted, "the model was called {} times for answer {}")
    by_owners = Counter(asked.sample.name for asked in each.asked if asked.role == "owner")
    owners = {name: by_owners[name] for name in names}
    yield from _others(each.name, owners, wanted, "{} owners for answer {}")
    unasked = sum(each.calls.values()) - sum(calls.values())
    if unasked:
        yield f"{each.name}: the model was called {unasked} times for what nobody asked"


def _others(round_name: str, counts: Mapping[str, int], wanted: int, words: str) -> Iterator[str]:
    """One sentence for all counts that are not as wanted; the worst stands for the others."""
    wrong = {name: count for name, count in counts.items() if count != wanted}
    if wrong:
        worst = max(wrong, key=lambda name: wrong[name])
        others = len(wrong) - 1
        more = f" (and {others} other answers are not as promised)" if others else ""
        yield f"{round_name}: {words.format(wrong[worst], worst)}, promised {wanted}{more}"
