from __future__ import annotations

import random
import re

import gevent
import pytest

from flightsvc.metrics import (
    FLIGHT_ANSWERS,
    FLIGHT_CALL_TIME,
    FLIGHT_CALLERS,
    FLIGHTS_IN_FLIGHT,
    GUARD_BREAKER,
    PROVIDER_ERRORS,
    PROVIDER_TIME,
    Metrics,
)
from flightsvc.settings import Settings
from tests.metrics.receiver import Receiver

LINE = re.compile(r"[A-Za-z0-9_.-]+:-?[0-9.]+\|(c|g|ms(\|@0\.[0-9]+)?)")


def at(receiver: Receiver, **values: object) -> Metrics:
    given = {"statsd_host": "127.0.0.1", "statsd_port": receiver.port, **values}
    return Metrics.from_settings(Settings.model_validate(given), worker="w0")


def test_everything_arrives_once_with_one_prefix(receiver: Receiver) -> None:
    metrics = at(receiver, statsd_prefix="shop.flights", statsd_flush_ms=100)
    metrics.gauge(FLIGHTS_IN_FLIGHT, lambda: 3)
    metrics.count(FLIGHT_CALLERS, 2, stage="evaluation")
    metrics.start()
    metrics.start()
    receiver.wait(lambda: receiver.values("shop.flights.flight.callers.evaluation", "c"))
    metrics.count(FLIGHT_CALLERS, stage="evaluation")
    metrics.time(FLIGHT_CALL_TIME, 0.25, stage="evaluation")
    receiver.wait(lambda: receiver.values("shop.flights.flight.call_time.evaluation", "ms"))
    metrics.close()
    assert receiver.values("shop.flights.flight.callers.evaluation", "c") == [2, 1]
    assert receiver.values("shop.flights.flight.call_time.evaluation", "ms") == [250]
    assert set(receiver.values("shop.flights.flight.in_flight.w0", "g")) == {3}
    assert all(LINE.fullmatch(line) for line in receiver.lines)


def test_close_sends_what_is_left_even_right_after_start(receiver: Receiver) -> None:
    metrics = at(receiver)
    metrics.start()
    metrics.count(FLIGHT_CALLERS, 5, stage="chat")
    metrics.close()
    metrics.close()
    receiver.wait(lambda: receiver.datagrams)
    assert receiver.totals() == {"flightsvc.flight.callers.chat": 5}


def test_after_close_it_can_start_again(receiver: Receiver) -> None:
    metrics = at(receiver)
    for _ in range(2):
        metrics.start()
        metrics.count(FLIGHT_CALLERS, stage="chat")
        metrics.close()
    receiver.wait(lambda: receiver.totals() == {"flightsvc.flight.callers.chat": 2})


def test_more_timings_than_are_kept_still_count(receiver: Receiver) -> None:
    metrics = at(receiver)
    for _ in range(3_777):
        metrics.time(FLIGHT_CALL_TIME, 0.1, stage="chat")
    metrics.start()
    metrics.close()
    receiver.wait(lambda: len(receiver.lines) == 100)
    assert receiver.totals() == {"flightsvc.flight.call_time.chat": pytest.approx(3_777, rel=1e-6)}
    assert set(receiver.values("flightsvc.flight.call_time.chat", "ms")) == {100}
    assert all(LINE.fullmatch(line) for line in receiver.lines)


def test_h44_datagrams_stay_within_512_bytes_with_the_longest_names(receiver: Receiver) -> None:
    metrics = Metrics("127.0.0.1", receiver.port, prefix="p" * 200, worker="w" * 80)
    for number in range(60):
        labels = {"provider": f"{number}" + "p" * 60, "model": "m" * 60}
        metrics.count(PROVIDER_ERRORS, 10**15 - 1, **labels, code="c" * 60)
        metrics.time(PROVIDER_TIME, 999_999_999.123456, **labels)
        metrics.gauge(GUARD_BREAKER, lambda: -123456789.0123456, **labels)
    for _ in range(5_000):
        metrics.time(PROVIDER_TIME, 0.123456789, **labels)
    metrics.start()
    metrics.close()
    receiver.wait(lambda: len(receiver.values("p" * 100 + ".guard.breaker", "g")) >= 0)
    receiver.wait(lambda: sum(line.endswith("|g") for line in receiver.lines) >= 2 * 60)
    assert max(map(len, receiver.datagrams)) <= 512
    assert all(LINE.fullmatch(line) for line in receiver.lines)


def test_h42_a_hostile_model_name_is_one_clean_line(receiver: Receiver) -> None:
    metrics = Metrics("127.0.0.1", receiver.port)
    metrics.count(PROVIDER_ERRORS, provider="openai", model="gpt-4o:free|α x\ny:9|c", code="X")
    metrics.start()
    metrics.close()
    receiver.wait(lambda: receiver.datagrams)
    assert receiver.datagrams == [b"flightsvc.provider.errors.openai.gpt-4o_free___x_y_9_c.X:1|c"]


def test_gauges_of_two_workers_do_not_overwrite_each_other(receiver: Receiver) -> None:
    for number in range(2):
        metrics = Metrics("127.0.0.1", receiver.port, worker=f"w{number}")
        metrics.gauge(FLIGHTS_IN_FLIGHT, lambda number=number: number)  # type: ignore[misc]
        metrics.count(FLIGHT_CALLERS, stage="chat")
        metrics.start()
        metrics.close()
    receiver.wait(lambda: len(receiver.lines) == 4)
    assert receiver.values("flightsvc.flight.in_flight.w0", "g") == [0]
    assert receiver.values("flightsvc.flight.in_flight.w1", "g") == [1]
    assert receiver.totals() == {"flightsvc.flight.callers.chat": 2}


def test_a_reader_that_raises_does_not_hold_up_the_others(receiver: Receiver) -> None:
    metrics = at(receiver)
    metrics.gauge(FLIGHTS_IN_FLIGHT, lambda: 1 / 0)
    metrics.gauge(GUARD_BREAKER, lambda: 2, provider="simulated", model="simulated")
    metrics.start()
    metrics.close()
    receiver.wait(lambda: receiver.datagrams)
    assert receiver.lines == ["flightsvc.guard.breaker.simulated.simulated.w0:2|g"]


def test_h44_the_gauge_after_200_random_starts_ends_and_kills(receiver: Receiver) -> None:
    metrics = at(receiver, statsd_flush_ms=100)
    flights: dict[int, gevent.Greenlet[[int], None]] = {}
    metrics.gauge(FLIGHTS_IN_FLIGHT, lambda: len(flights))
    metrics.start()
    chance = random.Random(44)

    def fly(number: int) -> None:
        try:
            metrics.count(FLIGHT_CALLERS, stage="chat")
            gevent.sleep(chance.random() / 4)
            metrics.count(FLIGHT_ANSWERS, stage="chat", role="owner")
        finally:
            del flights[number]

    started = []
    for number in range(200):
        flights[number] = gevent.spawn(fly, number)
        started.append(flights[number])
        gevent.sleep(0.002)
        if chance.random() < 0.3:
            flights[chance.choice(list(flights))].kill(block=False)
    gevent.joinall(started)
    metrics.close()
    name = "flightsvc.flight.in_flight.w0"
    receiver.wait(lambda: receiver.totals().get("flightsvc.flight.callers.chat") == 200)
    receiver.wait(lambda: receiver.values(name, "g")[-1] == 0)
    seen = receiver.values(name, "g")
    assert min(seen) == 0
    assert max(seen) > 0
    assert max(map(len, receiver.datagrams)) <= 512
