"""H15: Redis is frozen, gone, or comes back with or without its data."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.callers import Asker, Question, bodies, codes, measured
from tests.faults.nodes import Node, Pair
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

MODEL_S = 0.3
#: an answer comes so long after the model's at most; design.md says 300 ms for the first
LATE_S = 1.0
UNAVAILABLE = {(503, "COORDINATION_UNAVAILABLE")}
#: no owner is taken over for the time that Redis needs to start again
PATIENT = {"FLIGHTSVC_TAKEOVER_DETECT_MS": "8000"}


@pytest.fixture(scope="module")
def keeping_redis() -> Iterator[RedisServer]:
    """A server that writes everything down at once."""
    with RedisServer("--appendonly", "yes", "--appendfsync", "always") as server:
        yield server


@pytest.fixture(scope="module", params=["hybrid", "distributed"])
def nodes(
    request: pytest.FixtureRequest, keeping_redis: RedisServer, model_server: ModelServerProcess
) -> Iterator[Pair]:
    with Pair(keeping_redis, model_server, mode=request.param, env=PATIENT) as pair:
        yield pair


@pytest.fixture
def pair(nodes: Pair, model: ModelServerProcess) -> Pair:
    nodes.warm()
    return nodes


def overheads(askers: list[Asker]) -> list[float]:
    """What each caller waited beyond the model's time, in s."""
    return [asker.took_s - MODEL_S for asker in askers]


def one_by_one(node: Node, count: int) -> list[Asker]:
    """Callers of new questions, one after the other."""
    askers = []
    for _ in range(count):
        (asker,) = node.ask(Question())
        asker.reply()
        askers.append(asker)
    return askers


def test_h15_a_frozen_redis_costs_one_caller_its_time_out_and_the_others_nothing(
    pair: Pair,
) -> None:
    pair.model.script({"default": {"latency_ms": int(MODEL_S * 1000)}})
    usual = statistics.median(overheads(one_by_one(pair.a, 5)))
    calls = pair.model.stats()["calls"]
    pair.redis.freeze()
    try:
        first = one_by_one(pair.a, 1)
        later = one_by_one(pair.a, 10) + pair.a.ask(Question(), 10)
        ready = pair.a.readiness()
        assert all(asker.reply() for asker in later)
        wait_until(lambda: pair.last(pair.a, "coordination.up") == 0)
    finally:
        pair.redis.thaw()
    thawed_at = time.monotonic()
    if pair.mode == "hybrid":
        bodies(first), bodies(later[:10]), bodies(later[10:])
        assert ready == (200, "ready", "degraded")
        assert pair.model.stats()["calls"] - calls == 12
        assert {asker.reply().headers["flight-role"] for asker in later} == {"local"}
        measured("Redis frozen: the first caller beyond the model", overheads(first)[0])
        extra = statistics.median(overheads(later[:10])) - usual
        measured("Redis frozen: later callers beyond the usual", extra)
        assert overheads(first)[0] < LATE_S
        assert extra < 0.2
    else:
        assert codes(first + later) == UNAVAILABLE
        assert ready == (503, "not_ready", "degraded")
        assert pair.model.stats()["calls"] == calls
        assert first[0].took_s < LATE_S
        assert statistics.median(asker.took_s for asker in later) < 0.2
    # it comes back by itself, though nobody asks
    wait_until(lambda: pair.last(pair.a, "coordination.up") == 1, 5)
    measured("Redis goes on: until coordination is back", time.monotonic() - thawed_at)
    assert pair.a.readiness() == (200, "ready", "ok")


def test_h15_frozen_in_mid_flight_the_answer_is_told_at_once_and_stored_later(pair: Pair) -> None:
    question = Question()
    pair.model.script([question.rule(gate="answer")])
    mine = pair.a.ask(question, 3)
    pair.await_calls(question)
    theirs = pair.b.ask(question, 3)
    pair.await_following(question)
    pair.redis.freeze()
    try:
        pair.model.open_gate("answer")
        opened_at = time.monotonic()
        assert len(bodies(mine)) == 1
        assert max(asker.answered_at for asker in mine) - opened_at < LATE_S
        assert all(asker.waits for asker in theirs)
    finally:
        pair.redis.thaw()
    assert bodies(theirs) == bodies(mine)
    assert pair.calls(question) == 1


def test_h15_a_call_that_fails_while_redis_is_frozen_is_not_repeated(pair: Pair) -> None:
    question = Question()
    pair.model.script([question.rule(gate="fails", status=500)])
    mine = pair.a.ask(question, 3)
    pair.await_calls(question)
    theirs = pair.b.ask(question, 3)
    pair.await_following(question)
    pair.redis.freeze()
    try:
        pair.model.open_gate("fails")
        assert codes(mine) == {(503, "PROVIDER_UNAVAILABLE")}
    finally:
        pair.redis.thaw()
    assert codes(theirs) == {(503, "PROVIDER_UNAVAILABLE")}
    assert pair.calls(question) == 1


@pytest.mark.parametrize("kept", [True, False], ids=["with its data", "without its data"])
def test_h14_redis_restarts_in_mid_flight(pair: Pair, kept: bool) -> None:
    question, meanwhile = Question(), Question()
    pair.model.script([question.rule(gate="answer"), meanwhile.rule()])
    mine = pair.a.ask(question, 3)
    pair.await_calls(question)
    theirs = pair.b.ask(question, 3)
    pair.await_following(question)
    if not kept:
        pair.redis.client().flushall()  # also what is written down
    pair.redis.kill()
    pair.await_redis(pair.a, "degraded")
    # who asks while it is gone is answered at once
    between = pair.a.ask(meanwhile, 3)
    if pair.mode == "hybrid":
        bodies(between)
    else:
        assert codes(between) == UNAVAILABLE
    assert max(asker.took_s for asker in between) < LATE_S
    pair.redis.start()
    for node in pair.nodes:
        pair.await_redis(node, "ok", 5)
    pair.model.open_gate("answer")
    assert len(bodies(mine + theirs)) == 1
    assert pair.calls(question) == 1 if kept else pair.calls(question) <= 2
    # and what comes later is a flight of both again
    later = Question()
    pair.model.script([later.rule(takes_s=MODEL_S)])
    askers = pair.a.ask(later, 3) + pair.b.ask(later, 3)
    assert len(bodies(askers)) == 1
    assert pair.calls(later) == 1
    fences = {int(asker.reply().headers["flight-fence"]) for asker in askers}
    assert min(fences) > int(mine[0].reply().headers["flight-fence"])


@pytest.mark.parametrize("mode", ["hybrid", "distributed"])
def test_h15_redis_is_absent_at_the_start(model: ModelServerProcess, mode: str) -> None:
    redis, question, later = RedisServer(), Question(), Question()
    model.script([question.rule(takes_s=MODEL_S), later.rule(takes_s=MODEL_S)])
    try:
        with Pair(redis, model, mode=mode) as pair:
            askers = pair.a.ask(question, 3)
            if mode == "hybrid":
                bodies(askers)
                assert pair.a.readiness() == (200, "ready", "degraded")
            else:
                assert codes(askers) == UNAVAILABLE
                assert pair.a.readiness() == (503, "not_ready", "degraded")
            redis.start()
            for node in pair.nodes:
                pair.await_redis(node, "ok", 5)
            askers = pair.a.ask(later, 3) + pair.b.ask(later, 3)
            assert len(bodies(askers)) == 1
            assert pair.calls(later) == 1
    finally:
        redis.__exit__(None, None, None)
