"""The checker finds what is wrong in a history, names the invariant, and tells it short."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.proof.checker import check, report, shortest
from tests.proof.history import Entry, Journal, read, write
from tests.proof.rules import LATE_S, NAMED
from tests.proof.samples import BAD, GOOD, caller, e


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: entry.at)


def test_a_good_history_is_good() -> None:
    assert report(in_order(GOOD)) == ""


@pytest.mark.parametrize(("invariant", "entries", "told"), BAD.values(), ids=BAD)
def test_a_bad_history_is_found(invariant: int, entries: list[Entry], told: int) -> None:
    found = check(in_order(entries))

    assert {violation.invariant for violation in found} == {invariant}


@pytest.mark.parametrize(("invariant", "entries", "told"), BAD.values(), ids=BAD)
def test_it_is_found_among_much_else_and_told_short(
    invariant: int, entries: list[Entry], told: int
) -> None:
    # given a bad flight among good ones, with callers of its own that have nothing to do with it
    others = [replace(x, flight=f"g{n}", worker=f"g{x.worker}") for n in range(5) for x in GOOD]
    faults = [x for x in others if x.what == "fault"]
    others = [x for x in others if x.what != "fault"]
    noise = [x for n in range(5) for x in caller(n, n + 1, f"v{n}", "error WAIT_TIMEOUT")]
    some = faults if any(x.what == "fault" for x in entries) else []
    history = in_order([*entries, *others, *noise, *some])

    # when it is told
    violation = check(history)[0]
    story = shortest(history, violation)

    # then by its own entries, and not by all of them
    assert violation.invariant == invariant
    assert violation in check(story)
    assert set(story) <= {*entries, *faults}
    assert set(violation.entries) <= set(story)
    assert len(story) == told
    assert str(violation) in report(history)


@pytest.mark.parametrize("code", sorted(NAMED))
def test_a_named_error_is_an_answer(code: str) -> None:
    assert check(caller(0, 1, "w1", f"error {code}")) == []


def test_a_worker_that_was_killed_or_stood_still_is_excused() -> None:
    assert check([e(1, "ask", "w1", name="c", deadline=2), e(3, "fault", "w1", "killed")]) == []
    still = [e(1, "fault", "w1", "stopped"), e(3, "fault", "w1", "goes on")]
    assert check(in_order([*caller(0, 6.9 + LATE_S, "w1", "error WAIT_TIMEOUT"), *still])) == []


def test_a_failure_that_was_lost_may_be_called_again() -> None:
    bad = BAD["who waited for a failure calls again"][1]
    assert check(in_order([*bad, e(3.5, "fault", "", "lost everything")])) == []


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    # given the journals of two workers, one of which was killed within a line
    for worker in ("w1", "w2"):
        journal = Journal(tmp_path / f"{worker}.jsonl", worker)
        journal.write("acquire", got="OWNER_NEW", fence=7, flight="f", token=worker)
        journal.close()
    with (tmp_path / "w2.jsonl").open("a") as file:
        file.write('{"what": "ca')

    # when they are read, written and read once more
    history = read(tmp_path.glob("*.jsonl"))
    write(tmp_path / "all.jsonl", history)

    assert [(x.worker, x.token, x.fence) for x in history] == [("w1", "w1", 7), ("w2", "w2", 7)]
    assert read([tmp_path / "all.jsonl"]) == history
    assert report(history)
