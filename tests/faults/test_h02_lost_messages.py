"""H02: single messages between a worker and Redis are lost, one way or the other."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.callers import Asker, Question, bodies, codes
from tests.faults.incident import Harm
from tests.faults.lines import LinePair, line_pair
from tests.faults.nodes import DETECT_S
from tests.faults.resp import command, script
from tests.support.redis_server import RedisServer

MODEL_S = 0.3
#: an answer comes so long after the model's at most
LATE_S = 1.0
BROKEN = [Harm.RESET, Harm.CUT, Harm.RESET_REPLY, Harm.CUT_REPLY]
SILENT = [Harm.SWALLOW, Harm.SWALLOW_REPLY]


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
    asked = Question()
    pair.model.script([asked.rule(takes_s=MODEL_S)])
    return asked


def in_time(askers: list[Asker]) -> bool:
    return max(asker.took_s for asker in askers) < MODEL_S + LATE_S


# -- the acquire ----------------------------------------------------------------------------


@pytest.mark.parametrize("harm", BROKEN)
def test_h02_the_line_breaks_at_an_acquire(pair: LinePair, question: Question, harm: Harm) -> None:
    incident = pair.line.plan(harm, script("acquire", key=question.flight_id))
    askers = pair.a.ask(question, 3)
    assert incident.done.wait(5)
    askers += pair.b.ask(question, 3)
    # it asks again at once, and never waits for itself
    assert len(bodies(askers)) == 1
    assert in_time(askers)
    assert pair.calls(question) == 1
    assert int(askers[0].reply().headers["flight-fence"]) > 0


@pytest.mark.parametrize("harm", SILENT)
def test_h02_an_acquire_or_its_reply_never_arrives(
    pair: LinePair, question: Question, harm: Harm
) -> None:
    incident = pair.line.plan(harm, script("acquire", key=question.flight_id))
    askers = pair.a.ask(question, 3)
    assert incident.done.wait(5)
    if pair.mode == "hybrid":
        assert len(bodies(askers)) == 1
        assert pair.calls(question) == 1
    else:
        assert codes(askers) == {(503, "COORDINATION_UNAVAILABLE")}
        assert pair.calls(question) == 0
    assert in_time(askers)
    # whatever Redis believes of it, it is settled before a lease has to end
    pair.await_redis(pair.a, "ok")
    late = pair.b.ask(question)
    bodies(late)
    assert late[0].took_s < DETECT_S + MODEL_S + LATE_S
    expected = 2 if (harm, pair.mode) == (Harm.SWALLOW, "hybrid") else 1
    assert pair.calls(question) <= expected


# -- while it runs --------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["mark_running", "beat"])
@pytest.mark.parametrize("harm", [Harm.RESET, Harm.CUT_REPLY, *SILENT])
def test_h02_other_messages_of_an_owner_are_lost(
    pair: LinePair, question: Question, harm: Harm, verb: str
) -> None:
    incident = pair.line.plan(harm, script(verb, key=question.flight_id))
    askers = pair.a.ask(question, 2) + pair.b.ask(question, 2)
    assert len(bodies(askers)) == 1
    assert in_time(askers)
    assert pair.calls(question) == 1
    incident.let_go()


# -- the end --------------------------------------------------------------------------------


@pytest.mark.parametrize("harm", BROKEN + SILENT)
def test_h02_the_end_is_lost_and_told_again(pair: LinePair, question: Question, harm: Harm) -> None:
    incident = pair.line.plan(harm, script("finish", key=question.flight_id))
    mine = pair.a.ask(question, 3)
    pair.await_calls(question)
    theirs = pair.b.ask(question, 3)
    assert len(bodies(mine + theirs)) == 1
    assert incident.count == 1
    assert in_time(mine)
    # the others hear of it when it is told again
    assert max(asker.took_s for asker in theirs) < MODEL_S + DETECT_S + LATE_S
    assert {asker.reply().headers["flight-role"] for asker in theirs} == {"follower"}
    late = pair.b.answer(question)
    assert {late.body} == bodies(mine)
    assert pair.calls(question) == 1


@pytest.mark.parametrize("harm", BROKEN + SILENT)
def test_h02_the_failure_is_lost_and_no_call_is_made_for_it(pair: LinePair, harm: Harm) -> None:
    question = Question()
    pair.model.script([question.rule(takes_s=MODEL_S, status=500)])
    incident = pair.line.plan(harm, script("fail", key=question.flight_id))
    mine = pair.a.ask(question, 3)
    pair.await_calls(question)
    theirs = pair.b.ask(question, 3)
    assert codes(mine + theirs) == {(503, "PROVIDER_UNAVAILABLE")}
    assert incident.count == 1
    assert in_time(mine)
    assert pair.calls(question) == 1


# -- a follower's messages ------------------------------------------------------------------


@pytest.mark.parametrize("harm", BROKEN + SILENT)
def test_h02_a_follower_cannot_join(pair: LinePair, question: Question, harm: Harm) -> None:
    pair.model.script([question.rule(gate="answer")])
    owner = pair.b.ask(question, 2)
    pair.await_calls(question)
    incident = pair.line.plan(harm, script("acquire", key=question.flight_id))
    followers = pair.a.ask(question, 3)
    assert incident.done.wait(5)
    if harm in BROKEN:
        pair.await_following(question)
        pair.model.open_gate("answer")
        assert len(bodies(owner + followers)) == 1
        assert pair.calls(question) == 1
    elif pair.mode == "hybrid":
        # it cannot know that there is an owner
        pair.await_calls(question, 2)
        pair.model.open_gate("answer")
        bodies(owner + followers)
        assert pair.calls(question) == 2
    else:
        assert codes(followers) == {(503, "COORDINATION_UNAVAILABLE")}
        pair.model.open_gate("answer")
        bodies(owner)
        assert pair.calls(question) == 1


@pytest.mark.parametrize("harm", BROKEN + SILENT)
@pytest.mark.parametrize("what", ["read", "fetch"])
def test_h02_a_follower_loses_the_event_or_the_answer(
    pair: LinePair, question: Question, harm: Harm, what: str
) -> None:
    pair.model.script([question.rule(gate="answer")])
    askers = pair.b.ask(question, 2)
    pair.await_calls(question)
    incident = pair.line.plan(harm, command("xread")) if what == "read" else None
    askers += pair.a.ask(question, 3)
    pair.await_following(question)
    if incident is not None:
        assert incident.met.wait(5)
    else:
        incident = pair.line.plan(harm, script("acquire", key=question.flight_id))
    pair.model.open_gate("answer")
    opened_at = time.monotonic()
    assert len(bodies(askers)) == 1
    assert incident.done.wait(5)
    # a lost read costs its time-out, a second
    assert max(asker.answered_at for asker in askers) - opened_at < DETECT_S + LATE_S
    assert pair.calls(question) == 1
