"""Counting, and what counts as a broken promise."""

from __future__ import annotations

import json

import pytest

from flightsvc.demo.load import Asked, Reply
from flightsvc.demo.report import excerpt, legend, table
from flightsvc.demo.samples import IDENTICAL, SAMPLES, Sample
from flightsvc.demo.service import DemoFailed, DemoService
from flightsvc.demo.tally import Round, Row, broken_promises, by_worker

JUDGED = json.dumps({"score": 80, "feedback": "good"}).encode()


def answered(sample: Sample, role: str, *, body: bytes = JUDGED, latency_s: float = 1.0) -> Asked:
    reply = Reply(200, {"flight-role": role}, body)
    return Asked(f"{sample.name}-{role}", sample, reply, "", latency_s)


def first_round(*more: Asked, calls: dict[str, int] | None = None) -> Round:
    asked = [answered(sample, "owner") for sample in SAMPLES]
    counted = dict.fromkeys((sample.name for sample in SAMPLES), 1)
    return Round("at once", [*asked, *more], counted | (calls or {}))


def second_round(role: str = "l1", calls: dict[str, int] | None = None) -> Round:
    return Round("again", [answered(sample, role) for sample in SAMPLES], calls or {})


def test_as_promised() -> None:
    follower = answered(IDENTICAL, "follower")
    late = answered(IDENTICAL, "replay")

    assert list(broken_promises([first_round(follower, late), second_round()])) == []


@pytest.mark.parametrize(
    ("rounds", "says"),
    [
        ([first_round(calls={"en-2": 2})], "at once: the model was called 2 times for answer en-2"),
        ([first_round(calls={"default": 1})], "the model was called 1 times for what nobody"),
        ([first_round(answered(IDENTICAL, "owner"))], "at once: 2 owners for answer zh-1"),
        ([first_round(), second_round(calls={"en-1": 1})], "again: the model was called 1 times"),
        ([first_round(), second_round("owner")], "again: 1 owners for answer"),
        (
            [first_round(answered(IDENTICAL, "follower", body=b"{}"))],
            "at once: answer zh-1 was judged in 2 different ways",
        ),
        (
            [first_round(Asked("x", IDENTICAL, None, "TimeoutError: timed out", 45.0))],
            "at once: 1 of 12 got no answer (TimeoutError: timed out)",
        ),
        (
            [first_round(Asked("x", IDENTICAL, Reply(503, {}, b'{"code": "OVERLOAD"}'), "", 0.1))],
            "at once: 1 of 12 got no answer (HTTP 503, OVERLOAD)",
        ),
        (
            [first_round(Asked("x", IDENTICAL, Reply(502, {}, b"<html>"), "", 0.1))],
            "at once: 1 of 12 got no answer (HTTP 502, no problem document)",
        ),
    ],
)
def test_what_is_not_as_promised_is_said(rounds: list[Round], says: str) -> None:
    broken = list(broken_promises(rounds))

    assert len(broken) == 1
    assert says in broken[0]


def test_the_worst_stands_for_the_others() -> None:
    calls = dict.fromkeys((sample.name for sample in SAMPLES), 2) | {"zh-3": 9}

    broken = list(broken_promises([first_round(calls=calls)]))

    assert broken == [
        "at once: the model was called 9 times for answer zh-3, promised 1 "
        "(and 10 other answers are not as promised)"
    ]


@pytest.mark.parametrize(("share", "latency_s"), [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0)])
def test_latencies_are_by_nearest_rank(share: float, latency_s: float) -> None:
    asked = [answered(IDENTICAL, "l1", latency_s=float(each)) for each in range(100, 0, -1)]

    assert Row("all", asked, 0).latency_s(share) == latency_s


def test_rows_by_worker_hold_what_each_answered() -> None:
    asked = [answered(sample, "owner") for sample in SAMPLES]
    served_by = {each.request_id: 7 if number % 3 else 5 for number, each in enumerate(asked[:-1])}

    rows = by_worker(asked, served_by)

    assert [(row.name, len(row.asked)) for row in rows] == [("in worker 1", 4), ("in worker 2", 6)]


def test_rare_roles_have_columns_only_where_they_occur() -> None:
    usual = [first_round()]
    failed = Asked("x", IDENTICAL, None, "reset", 0.1)
    unusual = [first_round(answered(IDENTICAL, "local"), failed)]

    assert "local" not in table(usual, {}) + legend(usual)
    assert {"local", "error"} <= set(table(unusual, {}).split())
    assert "local" in legend(unusual)
    assert max(map(len, table(unusual, {}).splitlines())) <= 80


def test_without_an_answer_there_is_no_excerpt() -> None:
    assert excerpt([Asked("x", IDENTICAL, None, "reset", 0.1)]) == ""


def test_a_service_that_cannot_start_fails_with_its_last_words() -> None:
    with (
        pytest.raises(DemoFailed, match="did not get ready: it ended with 1") as failed,
        DemoService("http://127.0.0.1:1/v1", {"FLIGHTSVC_HEARTBEAT_MS": "soon"}),
    ):
        pass

    assert "FLIGHTSVC_HEARTBEAT_MS" in failed.value.log
