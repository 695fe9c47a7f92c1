"""The invariants, as rules about what is in a history.

Each rule reads the entries of one flight (and the faults), and knows nothing of how workers or
scripts are made. Two events are in order only where one was known before the other began. A rule
yields the number of the invariant, what is wrong, and the entries that show it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from tests.proof.history import Entry
from tests.proof.story import Story

#: Time in seconds that an end may come after a deadline, or a call may go on after it was lost.
LATE_S = 2.0

#: What a caller may be told instead of an answer.
NAMED = {
    "WAIT_TIMEOUT",
    "COORDINATION_UNAVAILABLE",
    "FLIGHT_OWNERS_LOST",
    "BUDGET_EXHAUSTED",
    "RESULT_NOT_STORED",
    "DRAINING",
    "MODEL_DOWN",
    "MODEL_REFUSES",
}

Found = Iterator[tuple[int, str, list[Entry]]]


def fences_rise(story: Story) -> Found:
    """1: fences of a flight rise strictly."""
    for one in story.grants:
        for other in story.grants:
            if one.fence == other.fence and one.token < other.token:
                yield 1, f"fence {one.fence} was granted twice", [one, other]
            if one.at < other.since and one.fence > other.fence:
                yield 1, f"fence {other.fence} was granted after {one.fence}", [one, other]


def ends_are_fenced(story: Story) -> Found:
    """2: one accepted end a fence; none once a higher fence was granted or accepted."""
    accepted = [*story.of("finish", "OK"), *story.of("fail", "OK")]
    for end in accepted:
        for grant in story.grants:
            if grant.at < end.since and grant.fence > end.fence:
                yield 2, f"{end.what} {end.fence} was accepted after {grant.fence}", [grant, end]
        for other in accepted:
            same = (end.what, end.value) == (other.what, other.value)
            if end.fence == other.fence and not same and end.at <= other.at and end is not other:
                yield 2, f"two ends were accepted under fence {end.fence}", [end, other]
            if end.at < other.since and end.fence > other.fence:
                yield 2, f"end {other.fence} was accepted after {end.fence}", [end, other]


def callers_are_answered(story: Story) -> Found:
    """3: everybody gets the accepted answer or a named error, by the own deadline."""
    answers = {answer.name: answer for answer in story.of("answer")}
    for ask in story.of("ask"):
        answer = answers.get(ask.name)
        if answer is None:
            if not story.killed(ask.worker, ask.at):
                yield 3, "a caller was never answered", [ask]
            continue
        late = answer.at - ask.deadline - story.frozen_s(ask.worker, ask.at, answer.at)
        if late > LATE_S:
            yield 3, f"a caller was answered {late:.1f} s late", [ask, answer]
        yield from _is_good(story, ask, answer)


def _is_good(story: Story, ask: Entry, answer: Entry) -> Found:
    error = answer.got.removeprefix("error ")
    if error != answer.got:
        if error not in NAMED:
            yield 3, f"a caller was told {error}", [ask, answer]
        return
    if answer.fence:
        ends = [e for e in story.of("finish") if (e.fence, e.value) == (answer.fence, answer.value)]
        told = [e for e in ends if e.got == "OK" or e.got.startswith("?")]
        sent = [e for e in ends if e.got == "sent" and story.killed(e.worker, e.at)]
        if not told and not sent:
            yield 3, f"nobody stored this answer of fence {answer.fence}", [ask, answer, *ends]
        return
    made = [c for c in story.of("called", "returned") if c.worker == answer.worker]
    if answer.value not in [call.value for call in made]:
        yield 3, "nobody of this worker made this answer", [ask, answer]


def calls_are_granted(story: Story) -> Found:
    """4: calls ≤ fences granted; without a fence, at most one a flight object."""
    by_ownership = defaultdict(list)
    for call in story.calls:
        by_ownership[call.token, call.fence].append(call)
    for (token, fence), calls in by_ownership.items():
        if len(calls) > 1:
            yield 4, f"{len(calls)} calls under fence {fence}", calls
        granted = [g for g in story.grants if (g.token, g.fence) == (token, fence)]
        if fence and not [g for g in granted if g.at <= calls[0].at]:
            yield 4, f"a call under fence {fence}, which was not granted", calls
    if not story.faults and len(story.calls) > 1 and not story.of("called", "raised"):
        yield 4, f"{len(story.calls)} calls without any fault", story.calls


def failures_are_not_repeated(story: Story) -> Found:
    """4: who waited on a failed call never repeats it."""
    for fail in story.of("fail", "OK"):
        for grant in story.grants:
            waited = 0 < grant.waited <= fail.fence and fail.at < grant.since
            later = [g for g in story.grants if fail.fence < g.fence and g is not grant]
            between = [g for g in later if g.since < grant.at and g.token != grant.token]
            if waited and not between and not story.lost_between(fail.since, grant.at):
                yield 4, f"who waited for fence {fail.fence} calls again", [fail, grant]


def the_lost_are_silent(story: Story) -> Found:
    """6: an owner that lost its flight stops calling and publishes nothing."""
    kinds = ("beat", "mark_running", "finish", "fail", "release", "append")
    for told in [entry for kind in kinds for entry in story.of(kind, "STALE")]:
        mine = [e for e in story.entries if e.token == told.token]
        for end in mine:
            late = end.what in ("finish", "fail") and end.got == "OK" and end.since > told.at
            if late and end.fence == told.fence and not _was_sent(mine, end, told.at):
                yield 6, f"an end of fence {told.fence}, which was lost", [told, end]
        regained = [g for g in story.grants if g.token == told.token and g.fence > told.fence]
        for call in [e for e in mine if e.what == "call" and e.at < told.at]:
            ended = [e for e in mine if e.what == "called" and e.name == call.name]
            until = ended[0].at if ended else float("inf")
            late_s = until - told.at - story.frozen_s(told.worker, told.at, until)
            alive = not story.killed(told.worker, told.at)
            if not regained and late_s > LATE_S and (ended or alive):
                yield 6, "a call goes on after its flight was lost", [call, told, *ended]


def _was_sent(entries: list[Entry], end: Entry, before: float) -> bool:
    """Whether an end had been sent before: after it, an owner has nothing to beat for."""
    sent = [e for e in entries if (e.what, e.got, e.fence) == (end.what, "sent", end.fence)]
    return any(e.at < before and e.value == end.value for e in sent)


def only_answers_are_stored(story: Story) -> Found:
    """8: what is stored is what a call returned."""
    for end in story.of("finish", "OK"):
        calls = [c for c in story.of("called", "returned") if c.at <= end.since]
        made = [c for c in calls if (c.token, c.value) == (end.token, end.value)]
        if not made:
            yield 8, f"nobody's call returned what was stored under {end.fence}", [end]


RULES: tuple[Callable[[Story], Found], ...] = (
    fences_rise,
    ends_are_fenced,
    callers_are_answered,
    calls_are_granted,
    failures_are_not_repeated,
    the_lost_are_silent,
    only_answers_are_stored,
)
