"""Hand-made histories: a good one, and bad ones of every kind."""

from __future__ import annotations

from typing import Any

from tests.proof.history import Entry
from tests.proof.rules import LATE_S


def e(at: float, what: str, worker: str, got: str = "", **about: Any) -> Entry:
    """An entry of flight ``f``; by default a worker has one flight object and one call."""
    given = {"flight": "f", "token": worker, "since": at - 0.1, **about}
    if what in ("call", "called"):
        given.setdefault("name", f"{worker}#1")
    if what == "fault":
        given = {}
    return Entry(what, at, worker=worker, got=got, **given)


def caller(begin: float, end: float, worker: str, got: str, **about: Any) -> list[Entry]:
    """A caller with 5 s of patience."""
    name = about.pop("name", f"{worker}/{begin}")
    ask = e(begin, "ask", worker, name=name, deadline=begin + 5)
    return [ask, e(end, "answer", worker, got, name=name, **about)]


def grant(at: float, worker: str, fence: int, **about: Any) -> Entry:
    return e(at, "acquire", worker, "OWNER_TAKEOVER", fence=fence, **about)


def call(
    begin: float, end: float, worker: str, fence: int, value: str = "", **about: Any
) -> list[Entry]:
    """A call that returns a value, or raises."""
    got = "returned" if value else "raised"
    began = e(begin, "call", worker, fence=fence, **about)
    return [began, e(end, "called", worker, got, fence=fence, value=value, **about)]


def finish(at: float, worker: str, fence: int, value: str, got: str = "OK") -> list[Entry]:
    told = {"fence": fence, "value": value}
    return [e(at - 0.1, "finish", worker, "sent", **told), e(at, "finish", worker, got, **told)]


def fail(at: float, worker: str, fence: int, got: str = "OK") -> list[Entry]:
    told = {"fence": fence, "value": "MODEL_DOWN"}
    return [e(at - 0.1, "fail", worker, "sent", **told), e(at, "fail", worker, got, **told)]


def flight(worker: str, fence: int, at: float, value: str) -> list[Entry]:
    """A whole flight of one worker, one second long."""
    return [
        grant(at + 0.2, worker, fence),
        *call(at + 0.3, at + 0.7, worker, fence, value),
        *finish(at + 0.9, worker, fence, value),
        *caller(at, at + 1, worker, "owner", fence=fence, value=value),
    ]


#: w1 freezes and is replaced by w2, whose call fails; then w3 has an answer, and w2 follows.
GOOD = [
    *caller(0.0, 4.0, "w1", "follower", fence=9, value="three"),
    grant(0.2, "w1", 7),
    *call(0.3, 2.6, "w1", 7, "one"),
    e(0.5, "fault", "w1", "stopped"),
    *caller(0.5, 2.0, "w2", "error MODEL_DOWN", fence=8),
    e(0.6, "acquire", "w2", "FOLLOWER_WAIT", fence=7),
    grant(1.2, "w2", 8, waited=7),
    *call(1.3, 1.6, "w2", 8),
    *fail(1.8, "w2", 8),
    e(2.5, "fault", "w1", "goes on"),
    *finish(2.8, "w1", 7, "one", "STALE"),
    e(2.7, "beat", "w1", "STALE", fence=7),
    grant(3.0, "w3", 9),
    *call(3.1, 3.3, "w3", 9, "three"),
    *finish(3.5, "w3", 9, "three", "? timeout"),
    *finish(3.9, "w3", 9, "three"),
    *caller(2.9, 3.6, "w3", "owner", fence=9, value="three"),
    *caller(5.0, 5.1, "w4", "replay", fence=9, value="three"),
]
FAULT = e(0.01, "fault", "", "connections reset")

#: what is wrong, the invariant, the history, and how many of its entries tell it
BAD: dict[str, tuple[int, list[Entry], int]] = {
    "a fence is granted to two": (1, [grant(1, "w1", 7), grant(2, "w2", 7)], 2),
    "a fence falls": (1, [grant(1, "w1", 8), grant(2, "w2", 7)], 2),
    "two answers under a fence": (
        2,
        [
            FAULT,
            *flight("w1", 7, 0, "one"),
            *call(2, 3, "w1", 0, "two", name="x"),
            *finish(4, "w1", 7, "two"),
        ],
        4,
    ),
    "an answer and a failure under a fence": (
        2,
        [*flight("w1", 7, 0, "one"), *fail(2, "w1", 7)],
        3,
    ),
    "an old owner's answer is accepted": (
        2,
        [FAULT, *flight("w1", 7, 0, "one"), grant(0.5, "w2", 8)],
        3,
    ),
    "an answer below the highest is accepted": (
        2,
        [
            FAULT,
            *flight("w1", 8, 0, "one"),
            grant(0.05, "w2", 7),
            *call(0.1, 1, "w2", 7, "two"),
            *finish(2, "w2", 7, "two"),
        ],
        4,
    ),
    "a caller is forgotten": (3, [e(1, "ask", "w1", name="c", deadline=2)], 1),
    "a caller is forgotten by a worker that was killed before": (
        3,
        [e(0.5, "fault", "w1", "killed"), e(1, "ask", "w1", name="c", deadline=2)],
        1,
    ),
    "a caller is answered late": (
        3,
        caller(0, 5.1 + LATE_S, "w1", "error WAIT_TIMEOUT"),
        2,
    ),
    "a caller is answered later than its worker stood still": (
        3,
        [
            e(1, "fault", "w1", "stopped"),
            e(3, "fault", "w1", "goes on"),
            *caller(0, 7.1 + LATE_S, "w1", "error WAIT_TIMEOUT"),
        ],
        4,
    ),
    "an error without a name": (3, caller(0, 1, "w1", "error UNEXPECTED"), 2),
    "an answer that nobody stored": (
        3,
        [*flight("w1", 7, 0, "one"), *caller(2, 3, "w2", "replay", fence=7, value="two")],
        2,
    ),
    "an answer that was refused": (
        3,
        [
            *call(0, 1, "w1", 0, "one"),
            *finish(2, "w1", 7, "one", "STALE"),
            *caller(0, 3, "w1", "owner", fence=7, value="one"),
        ],
        4,
    ),
    "an answer of another worker without a fence": (
        3,
        [*call(0, 1, "w1", 0, "one"), *caller(0, 2, "w2", "local", value="one")],
        2,
    ),
    "two calls under a fence": (
        4,
        [FAULT, grant(1, "w1", 7), *call(2, 3, "w1", 7), *call(4, 5, "w1", 7, name="w1#2")],
        4,
    ),
    "a call without a grant": (4, call(1, 2, "w1", 7), 1),
    "a call before its grant": (4, [*call(1, 2, "w1", 7), grant(3, "w1", 7)], 1),
    "two calls of one flight object without a fence": (
        4,
        [FAULT, *call(2, 3, "w1", 0), *call(4, 5, "w1", 0, name="w1#2")],
        3,
    ),
    "two calls without any fault": (
        4,
        [*flight("w1", 7, 0, "one"), *flight("w2", 8, 2, "two")],
        4,
    ),
    "who waited for a failure calls again": (
        4,
        [
            FAULT,
            grant(1, "w1", 7),
            *call(1, 2, "w1", 7),
            *fail(3, "w1", 7),
            grant(4, "w2", 8, waited=7),
        ],
        2,
    ),
    "an end after the flight was lost": (
        6,
        [e(0.4, "beat", "w1", "STALE", fence=7), *flight("w1", 7, 0, "one")],
        3,
    ),
    "a call goes on after the flight was lost": (
        6,
        [
            grant(0.5, "w1", 7),
            *call(1, 9, "w1", 7, "one"),
            e(2, "beat", "w1", "STALE", fence=7),
        ],
        4,
    ),
    "what is stored was never returned": (
        8,
        [grant(1, "w1", 7), *call(2, 3, "w1", 7), *finish(4, "w1", 7, "half an answ")],
        1,
    ),
    "what is stored was returned to another": (
        8,
        [FAULT, *call(2, 3, "w2", 0, "two"), grant(3, "w1", 7), *finish(4, "w1", 7, "two")],
        1,
    ),
}
