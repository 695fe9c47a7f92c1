"""Whether a history keeps the invariants; of one that does not, the shortest part that shows it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tests.proof.history import Entry
from tests.proof.rules import RULES
from tests.proof.story import Story


@dataclass(frozen=True)
class Violation:
    """An invariant that does not hold.

    :param entries: those that show it.
    """

    invariant: int
    flight: str
    why: str
    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        lines = "\n  ".join(map(str, self.entries))
        return f"invariant {self.invariant}: {self.why}\n  {lines}"


def check(history: list[Entry]) -> list[Violation]:
    """Everything in a history that breaks an invariant."""
    faults = [entry for entry in history if entry.what == "fault"]
    flights = defaultdict(list)
    for entry in history:
        if entry.what != "fault":
            flights[entry.flight].append(entry)
    found = []
    for flight, entries in flights.items():
        story = Story(entries, faults)
        for rule in RULES:
            for invariant, why, shown in rule(story):
                found.append(Violation(invariant, flight, why, tuple(shown)))
    return found


def shortest(history: list[Entry], violation: Violation) -> list[Entry]:
    """As little of a history as shows a violation, and breaks nothing that the whole does not.

    Entries of other flights go first; then one after the other, as long as the rest tells the
    same.
    """
    known = set(check(history))
    mine = [e for e in history if e.flight == violation.flight or e.what == "fault"]

    def tells_it(entries: list[Entry]) -> bool:
        left = check(entries)
        return violation in left and known.issuperset(left)

    before: list[Entry] = []
    while before != mine:
        before = mine
        for entry in reversed(before):
            rest = [other for other in mine if other is not entry]
            if tells_it(rest):
                mine = rest
    return mine


def report(history: list[Entry]) -> str:
    """What is wrong with a history, for people; empty if nothing is."""
    found = check(history)
    if not found:
        return ""
    first = min(found, key=lambda violation: max(e.at for e in violation.entries))
    lines = "\n  ".join(map(str, shortest(history, first)))
    return f"{len(found)} violations; the first is {first}\nand the story is\n  {lines}"
