"""H14, H17: Redis answers, but refuses: it is full, throws away, may not write, or still loads."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

import gevent
import pytest

from flightsvc.model_server.process import ModelServerProcess
from flightsvc.store import Names
from tests.faults.callers import Asker, Question, bodies, codes
from tests.faults.nodes import DETECT_S, Pair
from tests.faults.servers import TroubledServer
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

MODEL_S = 0.3
LATE_S = 1.0
UNAVAILABLE = {(503, "COORDINATION_UNAVAILABLE")}


@pytest.fixture(
    scope="module",
    params=["hybrid", "distributed", "hybrid, redis-server"],
)
def setting(request: pytest.FixtureRequest) -> tuple[str, str | None]:
    """Mode, and the server's binary (None: the embedded Valkey's)."""
    mode, _, package = request.param.partition(", ")
    found = shutil.which(package) if package else None
    if package and found is None:
        pytest.skip(f"Debian package {package} is missing")
    return mode, found


@pytest.fixture(scope="module")
def server(setting: tuple[str, str | None]) -> Iterator[TroubledServer]:
    with TroubledServer(program=setting[1]) as one:
        yield one


@pytest.fixture(scope="module")
def nodes(
    setting: tuple[str, str | None], server: TroubledServer, model_server: ModelServerProcess
) -> Iterator[Pair]:
    with Pair(server, model_server, mode=setting[0]) as pair:
        yield pair


@pytest.fixture
def pair(nodes: Pair, model: ModelServerProcess) -> Pair:
    nodes.warm()
    return nodes


def in_time(askers: list[Asker]) -> bool:
    return max(asker.took_s for asker in askers) < MODEL_S + LATE_S


def check_new_callers(pair: Pair) -> None:
    """Who asks now is answered at once: alone, or by a clear refusal."""
    question = Question()
    pair.model.script([question.rule(takes_s=MODEL_S)])
    askers = pair.a.ask(question, 5)
    if pair.mode == "hybrid":
        assert len(bodies(askers)) == 1
        assert pair.calls(question) == 1
    else:
        assert codes(askers) == UNAVAILABLE
        assert pair.calls(question) == 0
    assert in_time(askers)
    assert pair.a.readiness()[2] == "degraded"


def in_flight(pair: Pair, question: Question) -> tuple[list[Asker], list[Asker]]:
    """Callers of node a that own a flight, callers of node b that follow; the model is held."""
    pair.model.script([question.rule(first=True, gate="first"), question.rule(takes_s=MODEL_S)])
    mine = pair.a.ask(question, 3)
    pair.await_calls(question)
    theirs = pair.b.ask(question, 3)
    pair.await_following(question)
    return mine, theirs


# -- full -----------------------------------------------------------------------------------


def test_a_full_redis_fails_no_caller_that_has_an_answer(
    pair: Pair, server: TroubledServer
) -> None:
    question = Question()
    mine, theirs = in_flight(pair, question)
    with server.full():
        # its heartbeats need no memory: it stays the owner for longer than a lease
        gevent.sleep(1.5 * DETECT_S)
        assert pair.calls(question) == 1
        pair.model.open_gate("first")
        opened_at = time.monotonic()
        assert len(bodies(mine)) == 1
        assert max(asker.answered_at for asker in mine) - opened_at < LATE_S
        # the others are told that it could not be stored, soon, and call nothing themselves
        assert codes(theirs) == {(503, "RESULT_NOT_STORED")}
        assert max(asker.answered_at for asker in theirs) - opened_at < DETECT_S + LATE_S + 0.5
        assert pair.calls(question) == 1
        check_new_callers(pair)
    pair.await_redis(pair.a, "ok", 5)


def test_a_failure_is_told_though_redis_is_full(pair: Pair, server: TroubledServer) -> None:
    question = Question()
    pair.model.script([question.rule(gate="fails", status=500)])
    askers = pair.a.ask(question, 2)
    pair.await_calls(question)
    askers += pair.b.ask(question, 2)
    pair.await_following(question)
    with server.full():
        pair.model.open_gate("fails")
        assert codes(askers) == {(503, "PROVIDER_UNAVAILABLE")}
        assert pair.calls(question) == 1


# -- read-only ------------------------------------------------------------------------------


def test_h17_a_former_master_fails_nobody(pair: Pair, server: TroubledServer) -> None:
    question = Question()
    mine, theirs = in_flight(pair, question)
    with server.read_only():
        if pair.mode == "hybrid":
            # the owner goes on; the others hear nothing, and help themselves
            second = bodies(theirs)
            pair.model.open_gate("first")
            assert len(second) == len(bodies(mine)) == 1
            assert pair.calls(question) == 2
        else:
            assert codes(mine + theirs) == UNAVAILABLE
            assert pair.calls(question) == 1
        check_new_callers(pair)
    for node in pair.nodes:
        pair.await_redis(node, "ok", 5)


def test_h17_a_short_spell_as_a_replica_is_not_noticed_by_anybody(
    pair: Pair, server: TroubledServer
) -> None:
    question = Question()
    mine, theirs = in_flight(pair, question)
    with server.read_only():
        pair.model.open_gate("first")
        assert len(bodies(mine)) == 1
    assert bodies(theirs) == bodies(mine)
    assert pair.calls(question) == 1


# -- throwing away --------------------------------------------------------------------------


def test_h14_an_eviction_in_mid_flight_costs_one_more_call_at_most(
    pair: Pair, server: TroubledServer
) -> None:
    question = Question()
    mine, theirs = in_flight(pair, question)
    server.evict(Names(pair.namespace, 16).flight(question.flight_id)["meta"])
    pair.model.open_gate("first")
    assert len(bodies(mine + theirs)) == 1
    assert pair.calls(question) <= 2
    late = pair.b.answer(question)
    assert {late.body} == bodies(mine)


def test_h14_a_server_that_would_evict_is_warned_of(model: ModelServerProcess) -> None:
    with (
        RedisServer("--maxmemory-policy", "allkeys-lru") as evicting,
        Pair(evicting, model) as pair,
    ):
        for node in pair.nodes:
            node.answer(Question())
            wait_until(lambda: "maxmemory-policy is allkeys-lru" in node.service.log())  # noqa: B023


# -- loading --------------------------------------------------------------------------------


def test_h17_a_server_that_loads_its_data_fails_nobody(pair: Pair, server: TroubledServer) -> None:
    question = Question()
    mine, theirs = in_flight(pair, question)
    with server.reloading(4):
        pair.model.open_gate("first")
        if pair.mode == "hybrid":
            bodies(mine + theirs)
        else:
            for asker in mine + theirs:
                assert asker.reply().status in (200, 503)
        check_new_callers(pair)
    assert pair.calls(question) <= 2
    for node in pair.nodes:
        pair.await_redis(node, "ok", 5)
