from __future__ import annotations

from flightsvc.alerts import LocalCounters


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_count_is_forgotten_when_its_window_is_over() -> None:
    clock = Clock()
    counters = LocalCounters(clock)
    counters.count("a", 10)
    clock.now += 4
    counters.count("a", 10, 5)
    assert counters.total("a", 10) == 6
    clock.now += 7  # the first second is over
    assert counters.total("a", 10) == 5
    clock.now += 100
    assert counters.total("a", 10) == 0
    assert counters.total("b", 10) == 0


def test_windows_of_one_name_are_counted_apart() -> None:
    counters = LocalCounters(Clock())
    counters.count("a", 10, 2)
    counters.count("a", 60, 3)
    assert (counters.total("a", 10), counters.total("a", 60)) == (2, 3)


def test_memory_does_not_grow_beyond_the_window() -> None:
    clock = Clock()
    counters = LocalCounters(clock)
    for _ in range(1_000):
        clock.now += 1
        counters.count("a", 5)
    assert counters.total("a", 5) <= 6
    assert len(counters._current("a", 5)) <= 6


def test_a_claim_is_given_once_a_window() -> None:
    clock = Clock()
    counters = LocalCounters(clock)
    assert [counters.claim_once("x", 10) for _ in range(3)] == [True, False, False]
    assert counters.claim_once("y", 10)
    clock.now += 9.9
    assert not counters.claim_once("x", 10)
    clock.now += 0.2
    assert [counters.claim_once("x", 10) for _ in range(2)] == [True, False]
