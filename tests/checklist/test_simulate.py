"""A recorded trace is replayed as the list and the settings say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flightsvc.checklist.report import summary, text
from flightsvc.checklist.simulate import NO_FAILURE, Played, RetryBudget, simulate
from flightsvc.checklist.trace import read_trace
from flightsvc.errors import SettingsError
from flightsvc.settings import Settings
from tests.checklist.lists import merged
from tests.readme_pages import block, page

#: retries without end, where the retry budget is not the point
FREE: dict[str, Any] = {"retry_budget_min": 1_000_000}
NO_RETRIES: dict[str, Any] = {"retry_budget_min": 0, "retry_budget_ratio": 0}


def play(
    *lines: dict[str, Any], smaller_ms: int | None = 500, own: str = "", **values: Any
) -> list[Played]:
    settings = Settings(**values)
    trace = read_trace(map(json.dumps, lines), "trace")
    return simulate(trace, merged(own, settings), settings, smaller_ms=smaller_ms)


def line(at_ms: int = 0, latency_ms: int = 100, **more: Any) -> dict[str, Any]:
    return {"at_ms": at_ms, "latency_ms": latency_ms, "stage": "evaluation", **more}


def test_an_answer_is_one_call() -> None:
    (seen,) = play(line(latency_ms=1_234))
    assert seen == Played(first=NO_FAILURE, calls=1, latency_ms=1_234, ended="answered")


def test_the_article_s_schedule() -> None:
    """Attempts at 0, after 100 ms and after 300 ms; the smaller model 900 ms later."""
    (seen,) = play(line(latency_ms=50, code="PROVIDER_UNAVAILABLE"), **FREE)
    assert (seen.calls, seen.smaller) == (3, 1)
    assert seen.waited_ms == 100 + 300 + 900
    assert seen.latency_ms == 50 * 3 + 1_300 + 500
    assert (seen.ended, seen.action) == ("fallback", "smaller_model")


def test_a_recorded_retry_ends_as_it_was_recorded() -> None:
    recorded = [{"latency_ms": 40, "status": 503}, {"latency_ms": 70}]
    (seen,) = play(line(latency_ms=10, status=503, provider="openai", attempts=recorded), **FREE)
    assert (seen.calls, seen.smaller, seen.ended) == (3, 0, "answered")
    assert seen.latency_ms == 10 + 100 + 40 + 300 + 70
    assert seen.first == "PROVIDER_UNAVAILABLE"


def test_an_unrecorded_retry_meets_the_weather_of_its_time() -> None:
    """The second attempt begins at 150 ms: by then the model answers again."""
    first, _ = play(line(0, 50, code="PROVIDER_UNAVAILABLE"), line(120, 200), **FREE)
    assert (first.calls, first.latency_ms, first.ended) == (2, 350, "answered")
    first, *_ = play(
        line(0, 50, code="PROVIDER_UNAVAILABLE"),
        line(120, 200, stage="follow_up"),
        line(130, 200, provider="openai"),
        **FREE,
    )
    assert first.ended == "fallback"  # other stages and providers are other weather


@pytest.mark.parametrize(
    ("code", "action", "ended"),
    [
        ("AI_PAYMENT_FAILED", "manual_review", "failed"),
        ("AI_MODEL_OUTPUT_MALFORMED", "", "failed"),
        ("AI_INPUT_SENSITIVE", "refuse", "failed"),
        ("AI_ORDER_NOT_FOUND", "ask_input", "fallback"),
    ],
)
def test_what_is_not_retried_takes_its_fallback_at_once(code: str, action: str, ended: str) -> None:
    """Who waits for a person has an error now, as every caller has it."""
    (seen,) = play(line(latency_ms=80, code=code))
    assert seen == Played(first=code, calls=1, latency_ms=80, ended=ended, action=action)


def test_slow_attempts_are_timeouts_and_end_with_the_budget() -> None:
    """20 s of timeout, 30 s of budget: one retry at 20.1 s has 9.9 s, then nothing fits."""
    (seen,) = play(line(latency_ms=60_000), **FREE)
    assert seen.first == "AI_INFRA_TIMEOUT"
    assert (seen.calls, seen.smaller, seen.latency_ms) == (2, 0, 30_000)
    assert seen.ended == "failed"


def test_no_wait_is_begun_that_does_not_fit() -> None:
    stages = {"evaluation": {"timeout_ms": 1_000, "budget_ms": 2_000}}
    (seen,) = play(
        line(latency_ms=900, code="PROVIDER_UNAVAILABLE", retry_after_ms=1_001),
        stages=stages,
        **FREE,
    )
    assert (seen.calls, seen.held_back) == (1, "time")


def test_a_longer_retry_after_is_kept() -> None:
    (seen,) = play(
        line(
            latency_ms=10,
            code="PROVIDER_RATE_LIMITED",
            retry_after_ms=2_000,
            attempts=[{"latency_ms": 5}],
        ),
        **FREE,
    )
    assert (seen.waited_ms, seen.latency_ms) == (2_000, 2_015)


def test_a_stage_without_retries_goes_straight_on() -> None:
    (seen,) = play(line(latency_ms=10, stage="demeanor", code="AI_INFRA_TIMEOUT"), **FREE)
    assert (seen.calls, seen.smaller, seen.waited_ms) == (1, 1, 0)


def test_who_is_held_back_takes_the_fallback_at_once() -> None:
    """The 900 ms follow three attempts only."""
    (seen,) = play(line(latency_ms=10, code="PROVIDER_UNAVAILABLE"), **NO_RETRIES)
    assert (seen.calls, seen.smaller, seen.waited_ms, seen.held_back) == (1, 1, 0, "budget")


def test_when_nothing_is_left_a_person_takes_over_and_the_client_has_an_error() -> None:
    (seen,) = play(line(latency_ms=10, code="PROVIDER_UNAVAILABLE"), smaller_ms=None, **FREE)
    assert (seen.calls, seen.ended, seen.action) == (3, "failed", "manual_review")


def test_a_shortened_input_is_one_more_call_of_the_same_model() -> None:
    (seen,) = play(line(latency_ms=30, code="AI_MODEL_OOM"))
    assert (seen.calls, seen.smaller, seen.latency_ms) == (2, 0, 60)
    assert (seen.ended, seen.action) == ("fallback", "truncate")
    recorded = [{"latency_ms": 5, "code": "AI_MODEL_OOM"}]
    (seen,) = play(line(latency_ms=30, code="AI_MODEL_OOM", attempts=recorded))
    assert (seen.calls, seen.latency_ms, seen.ended) == (2, 35, "failed")


def test_without_a_smaller_model_the_call_fails() -> None:
    (seen,) = play(line(latency_ms=10, code="CIRCUIT_OPEN"), smaller_ms=None)
    assert (seen.smaller, seen.ended) == (0, "failed")
    (seen,) = play(
        line(latency_ms=10, code="CIRCUIT_OPEN", smaller={"latency_ms": 20}), smaller_ms=None
    )
    assert (seen.smaller, seen.ended, seen.latency_ms) == (1, "fallback", 30)
    (seen,) = play(
        line(latency_ms=10, code="CIRCUIT_OPEN", smaller={"latency_ms": 20, "status": 500})
    )
    assert (seen.smaller, seen.ended) == (1, "failed")


def test_the_retry_budget_bounds_the_amplification_of_an_outage() -> None:
    """1,000 requests in 10 s, all fail: 20 % of retries, not 200 %."""
    outage = [line(10 * number, 20, code="PROVIDER_UNAVAILABLE") for number in range(1_000)]
    bounded = summary(play(*outage, smaller_ms=None))["codes"]["total"]
    free = summary(play(*outage, smaller_ms=None, **FREE))["codes"]["total"]
    assert free["amplification"] == 3.0
    assert 1.0 < bounded["amplification"] <= 1.21
    assert summary(play(*outage))["held_back"]["retry_budget"] > 700


def test_the_retry_budget_always_allows_a_few_and_forgets() -> None:
    budget = RetryBudget(Settings())
    budget.called(0)
    assert [budget.take(number) for number in range(5)] == [True, True, True, False, False]
    assert budget.take(10_001)


def test_the_numbers_add_up_and_are_told_by_the_first_failure() -> None:
    found = summary(
        play(
            line(0, 100),
            line(10, 200),
            line(20, 300, code="AI_PAYMENT_FAILED"),
            line(30, 10, code="PROVIDER_UNAVAILABLE"),
            **FREE,
        )
    )
    rows = found["codes"]
    assert list(rows) == [NO_FAILURE, "AI_PAYMENT_FAILED", "PROVIDER_UNAVAILABLE", "total"]
    total = rows.pop("total")
    for key in ("requests", "calls", "smaller", "answered", "fallback", "failed"):
        assert sum(row[key] for row in rows.values()) == total[key]
    assert total["requests"] == total["answered"] + total["fallback"] + total["failed"] == 4
    assert total["amplification"] == round((total["calls"] + total["smaller"]) / 4, 3)
    assert rows[NO_FAILURE]["p50_ms"], rows[NO_FAILURE]["max_ms"] == (100, 200)
    assert found["fallbacks"] == {"smaller_model": 1}
    assert found["beside_errors"] == {"manual_review": 1}
    shown = text(found)
    assert shown.splitlines()[0].split() == [
        "first", "failure", "requests", "calls", "smaller", "amplification", "answered",
        "fallback", "failed", "p50", "ms", "p99", "ms", "max", "ms", "waited", "ms",
    ]  # fmt: skip
    assert "What stood in for an answer: 1 smaller_model." in shown
    assert "What was told beside an error: 1 manual_review." in shown


def test_failures_may_be_told_as_a_code_a_status_or_an_exception() -> None:
    outcomes: list[tuple[dict[str, Any], str]] = [
        ({"code": "PROVIDER_TIMEOUT"}, "AI_INFRA_TIMEOUT"),
        ({"status": 401, "provider": "openai"}, "PROVIDER_AUTH_FAILED"),
        ({"status": 200, "upstream_code": 20363, "provider": "xingchen"}, "AI_INPUT_SENSITIVE"),
        ({"exception": "ConnectionResetError"}, "PROVIDER_UNREACHABLE"),
        ({"exception": "AnswerCut"}, "AI_ANSWER_INCOMPLETE"),
        ({"exception": "RuntimeError", "text": "CUDA out of memory"}, "AI_MODEL_OOM"),
        ({"exception": "their.own.Timeout"}, "AI_INFRA_TIMEOUT"),
        ({"exception": "UnicodeDecodeError"}, "AI_UNKNOWN_ERROR"),
        ({"exception": "ProviderRejected", "status": 413, "provider": "openai"}, "AI_MODEL_OOM"),
        ({"status": 204}, NO_FAILURE),
    ]
    for fields, expected in outcomes:
        (seen,) = play(line(**fields))
        assert seen.first == expected, fields


def test_the_trace_of_the_documentation_is_one() -> None:
    lines = block(page("docs/checklist.md"), "json", "at_ms").splitlines()
    trace = read_trace(lines, "docs")
    assert len(trace) == 3
    seen = simulate(trace, merged(), Settings(), smaller_ms=500)
    assert [each.first for each in seen] == [NO_FAILURE, "PROVIDER_UNAVAILABLE", "AI_INFRA_TIMEOUT"]


def test_a_line_that_is_no_request_is_named() -> None:
    lines = [
        '{"at_ms": 0, "latency_ms": 1}',
        "",
        "nonsense",
        "[1]",
        '{"at_ms": 0}',
        '{"at_ms": 0, "latency_ms": "fast"}',
        '{"at_ms": 0, "latency_ms": 1, "latency": 1}',
    ]
    with pytest.raises(SettingsError) as raised:
        read_trace(lines, "t.jsonl")
    said = str(raised.value).splitlines()
    assert [each.split(": ")[0] for each in said] == [f"t.jsonl:{n}" for n in (3, 4, 5, 6, 7)]
    assert "write one object a line" in said[0]
    assert "latency_ms" in said[2]
    with pytest.raises(SettingsError, match="holds no request"):
        read_trace(["", " "], "t.jsonl")
