"""H05, H14, H16: Redis forgets scripts, streams or whole flights, and ends connections."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gevent
import pytest

from flightsvc.model_server.process import ModelServerProcess
from flightsvc.store import Names
from tests.faults.callers import Asker, Question, bodies, codes
from tests.faults.nodes import Pair
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

MODEL_S = 0.3
LATE_S = 1.0


@pytest.fixture(scope="module")
def forgetful() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="module", params=["hybrid", "distributed"])
def nodes(
    request: pytest.FixtureRequest, forgetful: RedisServer, model_server: ModelServerProcess
) -> Iterator[Pair]:
    with Pair(forgetful, model_server, workers=(1, 2), mode=request.param) as pair:
        yield pair


@pytest.fixture
def pair(nodes: Pair, model: ModelServerProcess) -> Pair:
    nodes.warm()
    return nodes


@pytest.fixture
def admin(pair: Pair) -> Any:
    return pair.redis.client()


@contextmanager
def again_and_again(pause_s: float, do: Callable[[], object]) -> Iterator[None]:
    """Do something all the time while the block runs."""

    def loop() -> None:
        while True:
            do()
            gevent.sleep(pause_s)

    doing = gevent.spawn(loop)
    try:
        yield
    finally:
        doing.kill()


def load(pair: Pair, questions: list[Question]) -> dict[Question, list[Asker]]:
    """Callers of each question on both nodes."""
    pair.model.script([each.rule(takes_s=MODEL_S) for each in questions])
    asking = {}
    for each in questions:
        asking[each] = pair.a.ask(each, 3) + pair.b.ask(each, 3)
        gevent.sleep(0.05)
    return asking


def test_h16_scripts_are_forgotten_all_the_time(pair: Pair, admin: Any) -> None:
    def troubles(what: str) -> float:
        totals = pair.metrics.totals()
        return sum(value for name, value in totals.items() if f".{what}." in name)

    wait_until(lambda: pair.waiting(pair.a) == pair.waiting(pair.b) == 0)
    before = troubles("redis.errors"), troubles("flight.fallbacks")
    with again_and_again(0.002, admin.script_flush):
        asking = load(pair, [Question() for _ in range(10)])
        for question, askers in asking.items():
            assert len(bodies(askers)) == 1
            assert pair.calls(question) == 1
    assert (troubles("redis.errors"), troubles("flight.fallbacks")) == before


def test_connections_are_ended_all_the_time(pair: Pair, admin: Any) -> None:
    killed = 0

    def kill() -> None:
        nonlocal killed
        killed += int(admin.client_kill_filter(_type="normal", skipme=True))

    with again_and_again(0.05, kill):
        asking = load(pair, [Question() for _ in range(10)])
        for question, askers in asking.items():
            refused = [asker for asker in askers if asker.reply().status != 200]
            if pair.mode == "hybrid":
                assert refused == []
            else:
                assert codes(refused) <= {(503, "COORDINATION_UNAVAILABLE")}
            # at worst every worker makes a call: one here, two there
            assert pair.calls(question) <= 3
    assert killed > 10


@pytest.mark.parametrize("how", ["deleted", "trimmed"])
def test_h05_the_events_are_lost_under_followers(pair: Pair, admin: Any, how: str) -> None:
    question = Question()
    pair.model.script([question.rule(gate="answer")])
    askers = pair.a.ask(question, 2)
    pair.await_calls(question)
    askers += pair.b.ask(question, 4)
    pair.await_following(question)
    events = Names(pair.namespace, 16).flight(question.flight_id)["events"]
    assert admin.delete(events) if how == "deleted" else admin.xtrim(events, maxlen=0)
    pair.model.open_gate("answer")
    opened_at = time.monotonic()
    assert len(bodies(askers)) == 1
    assert max(asker.answered_at for asker in askers) - opened_at < LATE_S
    assert pair.calls(question) == 1


def test_h14_a_flight_is_lost_under_its_owner(pair: Pair, admin: Any) -> None:
    question = Question()
    pair.model.script([question.rule(first=True, gate="first"), question.rule(takes_s=MODEL_S)])
    askers = pair.a.ask(question, 2)
    pair.await_calls(question)
    askers += pair.b.ask(question, 4)
    pair.await_following(question)
    (before,) = {fence for _, kind, fence in pair.events(question) if kind == "owned"}
    admin.flushall()
    # somebody has it again soon: the owner, whose call goes on, or one who waited
    wait_until(lambda: any(fence > before for _, _, fence in pair.events(question)), LATE_S)
    pair.model.open_gate("first")
    assert len(bodies(askers)) == 1
    assert pair.calls(question) <= 2
    assert pair.b.answer(question).body in bodies(askers)


def test_h18_all_that_is_left_ends_by_itself(pair: Pair, admin: Any) -> None:
    load(pair, [Question() for _ in range(10)])
    with again_and_again(0.01, lambda: check(pair.without_ttl())):
        gevent.sleep(1)
    assert pair.without_ttl() == []


def check(names: list[bytes]) -> None:
    assert names == []
