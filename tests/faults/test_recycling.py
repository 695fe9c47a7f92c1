"""Workers come and go under load (``max_requests``, HUP): nobody is lost, no call is repeated."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from signal import SIGHUP

import gevent
import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.callers import Asker, Question, bodies, codes, roles
from tests.faults.nodes import BOOT_S, GRACE_S, Pair, booted
from tests.processes import alive, wait_until
from tests.support.redis_server import RedisServer

MODEL_S = 0.3


@pytest.fixture(scope="module")
def nodes(redis_server: RedisServer, model_server: ModelServerProcess) -> Iterator[Pair]:
    # the old workers keep their callers until the new ones have started, also on a slow machine
    patient = {"FLIGHTSVC_GRACE_S": "20"}
    with Pair(redis_server, model_server, workers=(2, 2), env=patient) as pair:
        yield pair


@pytest.fixture
def pair(nodes: Pair, model: ModelServerProcess) -> Pair:
    nodes.await_complete()
    return nodes


def reload(pair: Pair) -> set[int]:
    """HUP node a, and wait until new workers run; its old workers."""
    old = set(pair.a.service.worker_pids())

    def renewed() -> bool:
        new = set(pair.a.service.worker_pids()) - old
        return len(new) == pair.a.workers and all(map(booted, new))

    os.kill(pair.a.service.pid, SIGHUP)
    wait_until(renewed, BOOT_S)
    return old


def calls_a_question(pair: Pair, questions: list[Question]) -> set[int]:
    return {pair.calls(question) for question in questions}


def test_workers_that_are_replaced_after_some_requests_lose_no_caller(
    redis_server: RedisServer, model: ModelServerProcess
) -> None:
    few = ("--max-requests", "5")
    questions = [Question(f"q{number}") for number in range(6)]
    model.script([question.rule(takes_s=MODEL_S) for question in questions])
    with Pair(redis_server, model, workers=(2, 2), options=(few, few)) as pair:
        first = {pid for node in pair.nodes for pid in node.service.worker_pids()}
        askers = {
            question: [asker for node in pair.nodes for asker in node.ask(question, 5)]
            for question in questions
        }
        for each in askers.values():
            assert len(bodies(each)) == 1
        assert calls_a_question(pair, questions) == {1}
        # and the next, who meet other workers, have the same answers
        wait_until(lambda: not all(alive(pid) for pid in first), BOOT_S)
        for question, each in askers.items():
            late = [asker for node in pair.nodes for asker in node.ask(question, 2)]
            assert bodies(late) == bodies(each)
        assert calls_a_question(pair, questions) == {1}
        assert all("Traceback" not in node.service.log() for node in pair.nodes)


def test_a_worker_that_is_replaced_in_mid_flight_tells_callers_that_wait_too_long(
    redis_server: RedisServer, model: ModelServerProcess
) -> None:
    question = Question()
    model.script([question.rule(first=True, gate="never"), question.rule(takes_s=MODEL_S)])
    with Pair(redis_server, model, options=(("--max-requests", "1"), ())) as pair:
        (mine,) = pair.a.ask(question)
        pair.await_calls(question)
        theirs = pair.b.ask(question, 3)
        # like at a TERM: what does not fit into the grace period is handed on, and said so
        assert codes([mine]) == {(503, "DRAINING")}
        assert mine.took_s > GRACE_S
        assert len(bodies(theirs)) == 1
        assert pair.calls(question) == 2


def test_hup_in_mid_flight_loses_no_caller(pair: Pair) -> None:
    question = Question()
    pair.model.script([question.rule(gate="answer")])
    before = pair.a.ask(question, 4)
    pair.await_calls(question)
    elsewhere = pair.b.ask(question, 2)
    pair.await_following(question)
    old = reload(pair)
    # who asks the new workers joins what the old ones began
    after = pair.a.ask(question, 4)
    pair.await_waiting(pair.a, 8)
    pair.model.open_gate("answer")
    assert len(bodies(before + elsewhere + after)) == 1
    assert roles(before).count("owner") == 1
    assert pair.calls(question) == 1
    wait_until(lambda: not any(alive(pid) for pid in old), BOOT_S)


def test_hup_under_load_refuses_nobody(pair: Pair) -> None:
    """New questions come all the time, also in the moment in which workers are told to stop."""
    askers: list[tuple[Question, Asker]] = []
    pair.model.script({"default": {"latency_ms": 50}})

    def load() -> None:
        while True:
            question = Question()
            askers.append((question, Asker(pair.a.service.url, question)))
            gevent.sleep(0.03)

    loading = gevent.spawn(load)
    for _ in range(2):
        old = reload(pair)
        wait_until(lambda: not any(alive(pid) for pid in old), BOOT_S)  # noqa: B023 - is called at once
    loading.kill()
    assert Counter(asker.reply().status for _, asker in askers) == {200: len(askers)}
    assert pair.model.stats()["calls"] == len(askers)
