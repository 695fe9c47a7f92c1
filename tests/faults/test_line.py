"""The whole line between a node and Redis is slow, silent, or broken again and again."""

from __future__ import annotations

import time
from collections.abc import Iterator

import gevent
import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.callers import Question, bodies, codes, roles
from tests.faults.lines import LinePair, line_pair
from tests.faults.nodes import DETECT_S
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

MODEL_S = 0.3
LATE_S = 1.0


@pytest.fixture(scope="module", params=["hybrid", "distributed"])
def nodes(
    request: pytest.FixtureRequest, redis_server: RedisServer, model_server: ModelServerProcess
) -> Iterator[LinePair]:
    with line_pair(redis_server, model_server, mode=request.param) as pair:
        yield pair


@pytest.fixture
def pair(nodes: LinePair, model: ModelServerProcess) -> LinePair:
    nodes.recover()
    return nodes


@pytest.fixture
def question(pair: LinePair) -> Question:
    """The first call of it is held, a second answers by itself."""
    asked = Question()
    pair.model.script([asked.rule(first=True, gate="first"), asked.rule(takes_s=MODEL_S)])
    return asked


def test_a_slow_line_makes_answers_later_and_nothing_else(pair: LinePair) -> None:
    """200 ms: nearly as long as Redis is waited for."""
    question = Question()
    pair.model.script([question.rule(takes_s=MODEL_S)])
    pair.line.delay(reply_s=0.2)
    mine = pair.a.ask(question, 3)
    pair.await_calls(question)
    theirs = pair.b.ask(question, 3)
    assert len(bodies(mine + theirs)) == 1
    assert roles(mine + theirs) == ["follower"] * 5 + ["owner"]
    # an acquire, a mark_running and a finish, each 200 ms late
    assert max(asker.took_s for asker in mine + theirs) < MODEL_S + 0.6 + LATE_S
    assert pair.calls(question) == 1


def test_a_line_that_is_too_slow_is_no_line(pair: LinePair) -> None:
    """200 ms each way: longer than Redis is waited for."""
    question = Question()
    pair.model.script([question.rule(takes_s=MODEL_S)])
    pair.line.delay(request_s=0.2, reply_s=0.2)
    askers = pair.a.ask(question, 3)
    if pair.mode == "hybrid":
        assert len(bodies(askers)) == 1
    else:
        assert codes(askers) == {(503, "COORDINATION_UNAVAILABLE")}
    assert max(asker.took_s for asker in askers) < MODEL_S + LATE_S
    assert pair.calls(question) == (1 if pair.mode == "hybrid" else 0)


def test_h11_an_owner_that_nobody_hears_is_replaced_and_heard_again(
    pair: LinePair, question: Question
) -> None:
    mine = pair.a.ask(question, 3)
    pair.await_calls(question)
    theirs = pair.b.ask(question, 3)
    pair.await_following(question)
    pair.line.fall_silent()
    silent_at = time.monotonic()
    # the others go on
    second = bodies(theirs)
    assert len(second) == 1
    late_s = max(asker.answered_at for asker in theirs) - silent_at
    assert late_s < DETECT_S + MODEL_S + 1.5
    if pair.mode == "hybrid":
        assert all(asker.waits for asker in mine)
        pair.line.heal()
        # what it would have said is refused, and its own callers have the other answer
        assert bodies(mine) == second
        pair.model.until(cancelled=1)
    else:
        assert codes(mine) == {(503, "COORDINATION_UNAVAILABLE")}
        pair.line.heal()
    ends = [(kind, fence) for _, kind, fence in pair.events(question) if kind != "owned"]
    assert ends == [("succeeded", int(theirs[0].reply().headers["flight-fence"]))]
    assert pair.calls(question) == 2


def test_followers_that_hear_nothing_for_a_moment_make_no_call(
    pair: LinePair, question: Question
) -> None:
    owner = pair.b.ask(question)
    pair.await_calls(question)
    followers = pair.a.ask(question, 3)
    pair.await_following(question)
    pair.line.fall_silent()
    pair.model.open_gate("first")
    bodies(owner)
    gevent.sleep(DETECT_S / 2)
    assert all(asker.waits for asker in followers)
    pair.line.heal()
    assert bodies(followers) == bodies(owner)
    assert pair.calls(question) == 1


def test_followers_that_hear_nothing_for_long_help_themselves(
    pair: LinePair, question: Question
) -> None:
    owner = pair.b.ask(question)
    pair.await_calls(question)
    followers = pair.a.ask(question, 3)
    pair.await_following(question)
    pair.line.fall_silent()
    silent_at = time.monotonic()
    if pair.mode == "hybrid":
        assert len(bodies(followers)) == 1
        assert pair.calls(question) == 2
    else:
        assert codes(followers) == {(503, "COORDINATION_UNAVAILABLE")}
        assert pair.calls(question) == 1
    # a read times out after a second, and then it is asked for takeover_detect
    late_s = max(asker.answered_at for asker in followers) - silent_at
    assert DETECT_S < late_s < 1 + DETECT_S + MODEL_S + LATE_S
    pair.model.open_gate("first")
    bodies(owner)


def test_what_was_asked_into_silence_does_not_block_the_question_later(
    pair: LinePair, question: Question
) -> None:
    """The ghost of an acquire: carried out when its asker has long gone on without."""
    pair.line.fall_silent()
    askers = pair.a.ask(question, 3)
    if pair.mode == "hybrid":
        pair.await_calls(question)
    else:
        assert codes(askers) == {(503, "COORDINATION_UNAVAILABLE")}
    gevent.sleep(DETECT_S)
    pair.line.heal()
    theirs = pair.b.ask(question, 3)
    if pair.mode == "hybrid":
        # the call that runs anyway becomes everybody's, or the other node has made one
        pair.await_redis(pair.a, "ok")
        pair.model.open_gate("first")
        bodies(askers)
    else:
        pair.model.open_gate("first")
    assert len(bodies(theirs)) == 1
    assert max(asker.took_s for asker in theirs) < 2 * DETECT_S + MODEL_S + LATE_S
    assert pair.calls(question) <= (2 if pair.mode == "hybrid" else 1)


@pytest.mark.parametrize("way", ["cut", "silent"])
def test_a_call_that_fails_while_the_line_is_down_is_not_repeated(pair: LinePair, way: str) -> None:
    question = Question()
    pair.model.script([question.rule(gate="fails", status=500)])
    mine = pair.a.ask(question, 3)
    pair.await_calls(question)
    theirs = pair.b.ask(question, 3)
    pair.await_following(question)
    pair.line.cut() if way == "cut" else pair.line.fall_silent()
    pair.model.open_gate("fails")
    assert codes(mine) == {(503, "PROVIDER_UNAVAILABLE")}
    pair.line.mend() if way == "cut" else pair.line.heal()
    assert codes(theirs) == {(503, "PROVIDER_UNAVAILABLE")}
    assert pair.calls(question) == 1


def test_a_call_that_fails_without_redis_is_not_repeated(pair: LinePair) -> None:
    question = Question()
    pair.model.script([question.rule(takes_s=0.1, status=500)])
    pair.line.fall_silent()
    askers = pair.a.ask(question, 5)
    if pair.mode == "hybrid":
        assert codes(askers) == {(503, "PROVIDER_UNAVAILABLE")}
        assert pair.calls(question) == 1
    else:
        assert codes(askers) == {(503, "COORDINATION_UNAVAILABLE")}
        assert pair.calls(question) == 0


def test_a_line_that_breaks_all_the_time_costs_no_caller(pair: LinePair) -> None:
    questions = [Question() for _ in range(10)]
    pair.model.script([each.rule(takes_s=MODEL_S) for each in questions])
    broken = 0

    def break_it() -> None:
        nonlocal broken
        while True:
            gevent.sleep(0.06)
            broken += pair.line.reset()

    breaking = gevent.spawn(break_it)
    askers = []
    for each in questions:
        askers.append(pair.a.ask(each, 2) + pair.b.ask(each, 2))
        gevent.sleep(0.1)
    for question, those in zip(questions, askers, strict=True):
        refused = [asker for asker in those if asker.reply().status != 200]
        if pair.mode == "hybrid":
            assert refused == []
        else:
            assert codes(refused) <= {(503, "COORDINATION_UNAVAILABLE")}
        assert pair.calls(question) <= 2
    breaking.kill()
    assert broken > 10
    wait_until(lambda: pair.a.readiness()[2] == "ok")
