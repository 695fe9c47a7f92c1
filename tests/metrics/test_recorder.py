from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import pytest

from flightsvc.metrics import (
    COORDINATION_UP,
    FLIGHT_ANSWERS,
    FLIGHT_CALL_TIME,
    FLIGHT_CALLERS,
    FLIGHTS_IN_FLIGHT,
    GUARD_BREAKER,
    HTTP_ANSWERS,
    METRICS_MISUSED,
    PROVIDER_ERRORS,
    PROVIDER_TIME,
    Metrics,
)
from flightsvc.metrics.series import LABEL_SETS, SAMPLES, Timer
from flightsvc.settings import Settings

HOSTILE = "gpt-4o:free|α x\ny:9|c"


class Lenient(Metrics):
    """As in production, whatever the test run sets."""

    strict = False


class Strict(Metrics):
    strict = True


def test_counts_add_up_by_rendered_name_in_any_order_of_labels() -> None:
    metrics = Metrics.off()
    metrics.count(FLIGHT_ANSWERS, stage="evaluation", role="owner")
    metrics.count(FLIGHT_ANSWERS, 4, role="owner", stage="evaluation")
    metrics.count(FLIGHT_ANSWERS, stage="evaluation", role="follower")
    assert metrics.snapshot() == {
        "flight.answers.evaluation.owner": 5,
        "flight.answers.evaluation.follower": 1,
    }


def test_timers_are_counted_and_summed_and_never_negative() -> None:
    metrics = Metrics.off()
    for seconds in (0.25, 0.5, -1.0):
        metrics.time(FLIGHT_CALL_TIME, seconds, stage="chat")
    assert metrics.snapshot() == {
        "flight.call_time.chat": 3,
        "flight.call_time.chat.sum_s": 0.75,
    }


def test_a_gauge_is_read_when_it_is_looked_at_and_the_last_reader_counts() -> None:
    metrics = Metrics.off()
    flights: set[int] = set()
    metrics.gauge(FLIGHTS_IN_FLIGHT, lambda: 99)
    metrics.gauge(FLIGHTS_IN_FLIGHT, lambda: len(flights))
    flights.update({1, 2})
    assert metrics.snapshot() == {"flight.in_flight": 2}
    flights.clear()
    assert metrics.snapshot() == {"flight.in_flight": 0}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300])
def test_a_gauge_that_is_no_number_is_left_out(bad: float) -> None:
    metrics = Metrics.off()
    metrics.gauge(FLIGHTS_IN_FLIGHT, lambda: bad)
    assert metrics.snapshot() == {}


def test_a_gauge_whose_reader_raises_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics.off()
    metrics.gauge(FLIGHTS_IN_FLIGHT, lambda: 1 / 0)
    metrics.gauge(COORDINATION_UP, lambda: 1)
    assert [metrics.snapshot() for _ in range(3)] == [{"coordination.up": 1}] * 3
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("evaluation", "evaluation"),
        ("follow-up_2", "follow-up_2"),
        ("", "none"),
        ("a.b", "a_b"),
        (" ", "_"),
        ("面试", "__"),
        ("x" * 41, "x" * 40),
        ("a:1|c\nb", "a_1_c_b"),
        ("{stage}", "_stage_"),
        ("١٢", "__"),
        ("%s\0\r\t", "_s___"),
        (HOSTILE, "gpt-4o_free___x_y_9_c"),
    ],
)
def test_labels_become_clean_parts_of_a_name(label: str, name: str) -> None:
    metrics = Metrics.off()
    metrics.count(FLIGHT_CALLERS, stage=label)
    assert list(metrics.snapshot()) == [f"flight.callers.{name}"]


def test_h42_unknown_models_share_one_name() -> None:
    metrics = Metrics.from_settings(Settings(openai_model="gpt-4o.mini"))
    for model in (HOSTILE, "o1", "", "gpt-4o.mini"):
        metrics.count(PROVIDER_ERRORS, provider="openai", model=model, code="X")
    metrics.know("model", "o1")
    metrics.count(PROVIDER_ERRORS, provider="openai", model="o1", code="X")
    assert metrics.snapshot() == {
        "provider.errors.openai.other.X": 3,
        "provider.errors.openai.gpt-4o_mini.X": 1,
        "provider.errors.openai.o1.X": 1,
    }


def test_the_number_of_names_is_bounded_and_nothing_is_lost() -> None:
    metrics = Metrics.off()
    calls = 30 * LABEL_SETS
    for number in range(calls):
        code = f"CODE_{number}"
        metrics.count(PROVIDER_ERRORS, provider="openai", model="m", code=code)
        metrics.count(PROVIDER_ERRORS, provider=f"p{number}", model=code, code="X")
    totals = metrics.snapshot()
    assert len(totals) <= 2 * LABEL_SETS
    assert sum(totals.values()) == 2 * calls
    assert totals["provider.errors.openai.m.CODE_0"] == 1
    # what is known stays apart, only the new value is lumped together
    assert totals["provider.errors.openai.m.other"] > 100


def test_new_sets_of_known_labels_keep_their_names_beyond_the_first_bound() -> None:
    metrics = Metrics.off()
    for number in range(LABEL_SETS):
        metrics.count(HTTP_ANSWERS, route=f"r{number}", status="200")
    metrics.count(HTTP_ANSWERS, route="evaluations", status="200")
    metrics.count(HTTP_ANSWERS, route="r1", status="503")
    metrics.count(HTTP_ANSWERS, route="r1", status="200")
    totals = metrics.snapshot()
    assert totals["http.answers.other.200"] == 1
    assert totals["http.answers.r1.other"] == 1
    assert totals["http.answers.r1.200"] == 2


def test_huge_and_many_labels_are_not_kept_in_memory() -> None:
    metrics = Metrics.off()
    for number in range(10_000):
        metrics.count(FLIGHT_CALLERS, stage=f"{number}" + "x" * 300)
        metrics.count(FLIGHT_CALLERS, stage=f"{number}")
    assert len(metrics._found) <= 4_096
    assert all(len(str(key)) < 400 for key in metrics._found)
    assert sum(metrics.snapshot().values()) == 20_000


class Unprintable:
    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        raise RuntimeError("no text")


MISUSE: dict[str, Callable[[Any], None]] = {
    "missing label": lambda m: m.count(FLIGHT_ANSWERS, stage="x"),
    "unknown label": lambda m: m.count(FLIGHT_CALLERS, stage="x", role="owner"),
    "count of a timer": lambda m: m.count(FLIGHT_CALL_TIME, stage="x"),
    "time of a counter": lambda m: m.time(FLIGHT_CALLERS, 1.0, stage="x"),
    "time of a gauge": lambda m: m.time(FLIGHTS_IN_FLIGHT, 1.0),
    "gauge of a counter": lambda m: m.gauge(FLIGHT_CALLERS, lambda: 1, stage="x"),
    "negative count": lambda m: m.count(FLIGHT_CALLERS, -1, stage="x"),
    "count of nan": lambda m: m.count(FLIGHT_CALLERS, math.nan, stage="x"),
    "count of text": lambda m: m.count(FLIGHT_CALLERS, "1", stage="x"),
    "time of nan": lambda m: m.time(FLIGHT_CALL_TIME, math.nan, stage="x"),
    "time of None": lambda m: m.time(FLIGHT_CALL_TIME, None, stage="x"),
    "label without text": lambda m: m.count(FLIGHT_CALLERS, stage=Unprintable()),
    "no metric": lambda m: m.count("flight.callers", stage="x"),
}


@pytest.mark.parametrize("misuse", MISUSE.values(), ids=MISUSE)
def test_wrong_use_never_raises_but_is_counted(misuse: Callable[[Any], None]) -> None:
    metrics = Lenient()
    misuse(metrics)
    assert metrics.snapshot()[METRICS_MISUSED.name] == 1


@pytest.mark.parametrize("misuse", MISUSE.values(), ids=MISUSE)
def test_wrong_use_raises_where_tests_are_strict(misuse: Callable[[Any], None]) -> None:
    with pytest.raises(Exception, match=r"."):
        misuse(Strict())


def test_wrong_use_after_right_use_is_noticed_too() -> None:
    metrics = Lenient()
    metrics.count(FLIGHT_CALLERS, stage="x")
    metrics.time(FLIGHT_CALL_TIME, 1.0, stage="x")
    metrics.gauge(GUARD_BREAKER, lambda: 1, provider="p", model="m")
    metrics.time(FLIGHT_CALLERS, 1.0, stage="x")
    metrics.count(FLIGHT_CALL_TIME, stage="x")
    metrics.count(GUARD_BREAKER, provider="p", model="m")
    assert metrics.snapshot()["metrics.misused"] == 3


def test_a_count_with_a_missing_label_is_kept_under_none() -> None:
    metrics = Lenient()
    metrics.count(FLIGHT_ANSWERS, stage="x", colour="red")
    assert metrics.snapshot()["flight.answers.x.none"] == 1


def test_a_timers_sample_is_bounded_and_fair() -> None:
    metrics = Metrics.off()
    for number in range(20 * SAMPLES):
        metrics.time(PROVIDER_TIME, number, provider="p", model="m")
    (timer,) = metrics._all()
    assert isinstance(timer, Timer)
    samples, rate = timer.take()
    assert len(samples) == SAMPLES
    assert rate == pytest.approx(1 / 20)
    # the mean of 100 fair draws from 0..1999: 999.5, with a deviation of 58
    assert 600 < sum(samples) / SAMPLES < 1400
    assert timer.take() == ([], 1.0)


def test_a_forked_child_that_starts_counts_from_nothing() -> None:
    metrics = Metrics.off()
    metrics.start()
    metrics.count(FLIGHT_CALLERS, 7, stage="x")
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            metrics.start()
            metrics.count(FLIGHT_CALLERS, stage="x")
            os.write(writer, str(metrics.snapshot()["flight.callers.x"]).encode())
        finally:
            os._exit(0)
    os.close(writer)
    assert os.read(reader, 100) == b"1"
    os.close(reader)
    os.waitpid(pid, 0)
    assert metrics.snapshot() == {"flight.callers.x": 7}
