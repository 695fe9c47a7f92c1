"""The invariants, while everything around the flights goes wrong at random."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import gevent
import pytest

from flightsvc.errors import CallFailed, WaitTimeout
from flightsvc.flight import FlightContext, FlightKey, SingleFlight
from tests.flight.conftest import Worker, counts
from tests.flight.flying import QUICK, Caller, Model, ask, values
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

CHAOS_S = 2.5
DEADLINE_S = 3.0
KEYS = [FlightKey("scoring", "k", n, tenant=f"tenant {n}") for n in range(4)]


class Scene:
    """Three workers, their callers, and a log of all calls of the model."""

    def __init__(self, server: RedisServer, workers: list[SingleFlight], seed: int) -> None:
        self.server = server
        self.workers = workers
        self.dice = random.Random(seed)
        self.callers: list[tuple[FlightKey, Caller]] = []
        #: calls of the model: their key, by number
        self.calls: list[FlightKey] = []
        self.fences: list[int] = []

    def call(self, key: FlightKey) -> Callable[[FlightContext], Any]:
        """A model of moods: slow, quick, or broken."""

        def call(ctx: FlightContext) -> Any:
            self.calls.append(key)
            self.fences.append(ctx.fence)
            number = len(self.calls)
            gevent.sleep(self.dice.choice([0, 0.01, 0.05, 0.2]))
            if self.dice.random() < 0.2:
                raise ValueError
            return {"call": number}

        return call

    def ask(self) -> None:
        """Callers come, and some of them leave."""
        while True:
            key, flights = self.dice.choice(KEYS), self.dice.choice(self.workers)
            replay = self.dice.random() < 0.3
            caller = Caller(flights, key, self.call(key), replay=replay, deadline_s=DEADLINE_S)
            self.callers.append((key, caller))
            if self.dice.random() < 0.1:
                gevent.spawn_later(0.02, caller.leave)
            gevent.sleep(0.01)

    def disturb(self) -> None:
        """One thing after another goes wrong."""
        while True:
            gevent.sleep(self.dice.uniform(0.02, 0.15))
            self.dice.choice([self.forget, self.lose, self.cut, self.freeze, self.restart])()

    def forget(self) -> None:
        self.server.client().script_flush()

    def lose(self) -> None:
        found: Any = self.server.client().keys("*:*:*")
        if found:
            self.server.client().delete(*self.dice.sample(found, k=max(1, len(found) // 2)))

    def cut(self) -> None:
        self.server.client().client_kill_filter(_type="normal")

    def freeze(self) -> None:
        self.server.freeze()
        try:
            gevent.sleep(self.dice.uniform(0.01, 0.6))
        finally:
            self.server.thaw()

    def restart(self) -> None:
        if self.dice.random() < 0.3:
            self.server.kill()
            try:
                gevent.sleep(self.dice.uniform(0, 0.4))
            finally:
                self.server.start()


@pytest.fixture(params=range(3))
def scene(request: Any, worker: Worker, own_redis: RedisServer) -> Scene:
    """After the chaos, when all callers have been told something."""
    brief = {"result_ttl_s": 5, "failure_ttl_s": 2, "l1_ttl_s": 0.2}
    workers = [worker(url=own_redis.url, **QUICK, stages={"default": brief}) for _ in range(3)]
    scene = Scene(own_redis, workers, request.param)
    asking, chaos = gevent.spawn(scene.ask), gevent.spawn(scene.disturb)
    gevent.sleep(CHAOS_S)
    asking.kill()
    chaos.kill()
    return scene


def test_whatever_happens_the_invariants_hold(
    scene: Scene, caplog: pytest.LogCaptureFixture, namespace: str
) -> None:
    every_caller_has_an_answer_or_a_named_error_in_time(scene)
    answers_are_those_of_the_calls(scene)
    no_two_calls_had_the_same_fence(scene)
    the_counters_add_up(scene)
    everything_is_as_before_when_it_is_over(scene)
    assert "unexpectedly" not in caplog.text


def every_caller_has_an_answer_or_a_named_error_in_time(scene: Scene) -> None:
    assert scene.callers
    for _, caller in scene.callers:
        if caller.left:
            continue
        error = caller.outcome(DEADLINE_S + 1)
        assert error is None or isinstance(error, (CallFailed, WaitTimeout)), repr(error)
        assert caller.took_s < DEADLINE_S + 0.7


def answers_are_those_of_the_calls(scene: Scene) -> None:
    by_fence: dict[tuple[FlightKey, int], set[int]] = defaultdict(set)
    for key, caller in scene.callers:
        if caller.left or not caller.answered:
            continue
        result = caller.result()
        number = result.value["call"]
        assert scene.calls[number - 1] == key  # nobody has another key's answer
        by_fence[key, result.fence].add(number)
    # one fence, one answer; what a worker did without Redis has no fence
    assert all(len(numbers) == 1 for (_, fence), numbers in by_fence.items() if fence)


def no_two_calls_had_the_same_fence(scene: Scene) -> None:
    granted = [(key, fence) for key, fence in zip(scene.calls, scene.fences, strict=True) if fence]
    assert len(granted) == len(set(granted))


def the_counters_add_up(scene: Scene) -> None:
    for flights in scene.workers:
        wait_until(lambda: counts(flights)["flight.in_flight"] == 0, 10)  # noqa: B023
        got = counts(flights)
        told = sum(
            value
            for name, value in got.items()
            if name.startswith(("flight.answers.scoring", "flight.errors.scoring"))
        )
        assert got["flight.callers.scoring"] == told + got.get("flight.left.scoring", 0)
        assert got["flight.waiters"] == 0
        begun = sum(
            got.get(name, 0)
            for name in (
                "flight.actions.scoring.owner_new",
                "flight.actions.scoring.owner_takeover",
                "flight.fallbacks.scoring",
            )
        )
        ends = sum(value for name, value in got.items() if name.startswith("flight.ends."))
        assert begun == ends
        assert "metrics.misused" not in got


def everything_is_as_before_when_it_is_over(scene: Scene) -> None:
    wait_until(lambda: all(flights.coordination == "ok" for flights in scene.workers), 5)
    model, key = Model(takes_s=0.2), FlightKey("scoring", "after the storm")
    began = time.monotonic()
    callers = [caller for flights in scene.workers for caller in ask(flights, key, model, 5)]
    assert values(callers) == [{"call": 1}]
    assert model.calls == 1
    assert time.monotonic() - began < 2
    client: Any = scene.server.client()
    for name in client.keys("*"):
        assert name.endswith(b":fence") or client.ttl(name) != -1, name
