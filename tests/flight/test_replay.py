"""L1: what it gives back, what it refuses, and that its memory is bounded."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from flightsvc.errors import KeyConflict
from flightsvc.flight.key import FlightKey
from flightsvc.flight.replay import ENTRY_OVERHEAD, Replay, ReplayCache
from flightsvc.flight.serializer import Payload, ResultSerializer


class Clock:
    """Seconds that go on when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def payload(size: int = 10) -> Payload:
    return Payload("bytes", bytes(size))


def cost(flight_id: str, data: int, digest: str = "") -> int:
    return ENTRY_OVERHEAD + len(flight_id) + len(digest) + data


def test_an_answer_comes_back_with_its_fence() -> None:
    cache = ReplayCache(10_000)
    answer = payload()
    cache.put("k", answer, 7, 30)
    assert cache.get("k") == Replay(answer, 7)
    assert cache.get("other") is None


def test_an_answer_is_gone_when_its_time_is_over(clock: Clock) -> None:
    cache = ReplayCache(10_000, clock)
    cache.put("k", payload(), 1, 30)
    clock.now += 29.9
    assert cache.get("k")
    clock.now += 0.1
    assert cache.get("k") is None
    assert (len(cache), cache.bytes_used) == (0, 0)


def test_the_real_clock_is_used_by_default() -> None:
    cache = ReplayCache(10_000)
    cache.put("k", payload(), 1, 0.02)
    time.sleep(0.03)
    assert cache.get("k") is None


@pytest.mark.parametrize("ttl_s", [0, -1, float("nan")])
def test_without_a_time_to_live_nothing_is_kept(ttl_s: float) -> None:
    cache = ReplayCache(10_000)
    cache.put("k", payload(), 1, ttl_s)
    assert cache.get("k") is None
    assert cache.bytes_used == 0


def test_a_lower_fence_does_not_replace_a_higher_one(clock: Clock) -> None:
    cache = ReplayCache(10_000, clock)
    old, new, newest = payload(1), payload(2), payload(3)
    cache.put("k", new, 5, 30)
    cache.put("k", old, 4, 30)
    assert cache.get("k") == Replay(new, 5)
    cache.put("k", newest, 6, 30)
    assert cache.get("k") == Replay(newest, 6)
    cache.put("k", new, 6, 30)  # without Redis all fences of a worker may be equal
    assert cache.get("k") == Replay(new, 6)
    clock.now += 31
    cache.put("k", old, 4, 30)  # what has expired defends nothing
    assert cache.get("k") == Replay(old, 4)


def test_a_newer_answer_that_cannot_be_kept_still_ends_the_older_one() -> None:
    cache = ReplayCache(2_000)
    for newer, ttl_s in ((payload(5_000), 30.0), (payload(), 0.0)):
        cache.put("k", payload(), 1, 30)
        cache.put("k", newer, 2, ttl_s)
        assert cache.get("k") is None


def test_another_request_under_the_same_key_is_a_conflict(clock: Clock) -> None:
    cache = ReplayCache(10_000, clock)
    cache.put("k", payload(), 1, 30, digest="one")
    assert cache.get("k", "one")
    for digest in ("two", ""):
        with pytest.raises(KeyConflict):
            cache.get("k", digest)
    clock.now += 31
    assert cache.get("k", "two") is None


def test_the_accepted_answer_of_a_later_request_replaces_the_earlier_ones() -> None:
    cache = ReplayCache(10_000)
    cache.put("k", payload(1), 1, 30, digest="one")
    cache.put("k", payload(2), 2, 30, digest="two")
    assert cache.get("k", "two") == Replay(payload(2), 2)


def test_the_least_recently_used_goes_first() -> None:
    cache = ReplayCache(3 * cost("a", 10))
    for name in "abc":
        cache.put(name, payload(), 1, 30)
    cache.get("a")
    cache.put("d", payload(), 1, 30)
    assert [name for name in "abcd" if cache.get(name)] == ["a", "c", "d"]


def test_what_is_larger_than_the_whole_cache_drives_nothing_out() -> None:
    cache = ReplayCache(2 * cost("a", 10))
    cache.put("a", payload(), 1, 30)
    cache.put("b", payload(100_000), 1, 30)
    assert cache.get("a")
    assert cache.get("b") is None


def test_a_cache_of_no_bytes_keeps_nothing() -> None:
    cache = ReplayCache(0)
    cache.put("a", Payload("bytes", b""), 1, 30)
    assert len(cache) == 0


def test_expired_answers_make_room_before_live_ones(clock: Clock) -> None:
    cache = ReplayCache(2 * cost("a", 10), clock)
    cache.put("o", payload(), 1, 1)
    cache.put("l", payload(), 1, 30)
    clock.now += 2
    cache.put("n", payload(), 1, 30)
    assert len(cache) == 2
    assert cache.get("l")
    assert cache.get("n")


def test_expired_answers_leave_the_cold_end_even_if_there_is_room(clock: Clock) -> None:
    cache = ReplayCache(100_000, clock)
    cache.put("old", payload(), 1, 1)
    clock.now += 2
    cache.put("new", payload(), 1, 30)
    assert len(cache) == 1


def test_forget_and_clear() -> None:
    cache = ReplayCache(10_000)
    for name in "abc":
        cache.put(name, payload(), 1, 30)
    cache.forget("a")
    cache.forget("never held")
    assert cache.get("a") is None
    assert cache.bytes_used == 2 * cost("b", 10)
    cache.clear()
    assert (len(cache), cache.bytes_used) == (0, 0)


def test_h32_one_callers_changes_do_not_reach_another() -> None:
    cache = ReplayCache(10_000)
    cache.put("k", ResultSerializer(1_000).freeze({"points": ["a"]}), 1, 30)

    def caller() -> Any:
        replay = cache.get("k")
        assert replay
        return replay.payload.thaw()

    mine, yours = caller(), caller()
    mine["points"].append("b")
    assert yours == caller() == {"points": ["a"]}


def test_an_entry_costs_no_more_memory_than_is_counted() -> None:
    count = 4_000
    cache = ReplayCache(1 << 30)
    keys = [FlightKey("s", n).flight_id for n in range(count)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for n, key in enumerate(keys):
            # the id too is a text of its own, as in a worker
            cache.put(key[:16] + key[16:], payload(500), 10**15 + n, 30.0)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.5 * cache.bytes_used < grown <= cache.bytes_used


class ReplayCacheAgainstAModel(RuleBasedStateMachine):
    """Any order of calls: never a wrong, old or expired answer; the count of bytes is right."""

    MAX_BYTES = 4 * ENTRY_OVERHEAD

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.cache = ReplayCache(self.MAX_BYTES, self.clock)
        self.best: dict[str, tuple[int, int, float]] = {}  # fence, size, expiry

    names = st.sampled_from("abcdef")

    @rule(name=names, size=st.integers(0, 900), fence=st.integers(0, 5), ttl_s=st.integers(0, 9))
    def put(self, name: str, size: int, fence: int, ttl_s: int) -> None:
        held = self.best.get(name)
        if held is None or held[2] <= self.clock.now or held[0] <= fence:
            self.best[name] = (fence, size, self.clock.now + ttl_s)
        self.cache.put(name, payload(size), fence, ttl_s)

    @rule(name=names)
    def get(self, name: str) -> None:
        replay = self.cache.get(name)
        if replay is None:
            # gone for space: from here on a lower fence may come in
            self.best.pop(name, None)
            return
        fence, size, expiry = self.best[name]
        assert (replay.fence, len(replay.payload.data)) == (fence, size)
        assert expiry > self.clock.now

    @rule(name=names)
    def forget(self, name: str) -> None:
        self.cache.forget(name)
        self.best.pop(name, None)

    @rule(seconds=st.integers(1, 5))
    def wait(self, seconds: int) -> None:
        self.clock.now += seconds

    @invariant()
    def bytes_are_bounded_and_counted(self) -> None:
        entries = self.cache._entries.items()
        assert self.cache.bytes_used <= self.MAX_BYTES
        assert self.cache.bytes_used == sum(
            cost(name, len(entry.replay.payload.data)) for name, entry in entries
        )
        # What went for space is no longer in the model either.
        self.best = {name: held for name, held in self.best.items() if name in dict(entries)}


TestReplayCacheAgainstAModel = ReplayCacheAgainstAModel.TestCase
TestReplayCacheAgainstAModel.settings = settings(
    derandomize=True, deadline=None, max_examples=100, stateful_step_count=40
)
