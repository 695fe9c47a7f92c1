"""Codes that come from how things stand, each brought about for real."""

from __future__ import annotations

import json

import gevent
import pytest

from flightsvc.errors import ProviderUnavailable
from tests.golden.scene import SMALL
from tests.golden.telling import CHECKLIST, LANGUAGES, NO_RETRY, Make, is_told


@pytest.mark.parametrize("language", LANGUAGES)
def test_retry_exhausted(make: Make, language: str) -> None:
    """Three on the primary, one on the smaller model; then a person takes over."""
    scene = make()
    scene.model.script(
        [
            {"name": "small", "match": {"model": SMALL}, "behave": {"status": 500}},
            {"match": {}, "behave": {"status": 500}},
        ]
    )
    body = is_told(scene.ask(language), "RETRY_EXHAUSTED", language)

    assert scene.attempts() == (3, 1)
    assert scene.took_s >= 1.3
    assert body["fallback"] == "manual_review"
    (event,) = scene.events()
    assert (event["kind"], event["queue"]) == ("manual_review", "duty")
    assert scene.counted(CHECKLIST.code("RETRY_EXHAUSTED")) == 1
    assert scene.counted(CHECKLIST.code("PROVIDER_UNAVAILABLE")) == 1  # the cause counts too


@pytest.mark.parametrize("language", LANGUAGES)
def test_circuit_open(make: Make, language: str) -> None:
    scene = make(breaker_failures=1, openai_small_model="", stages=NO_RETRY)
    scene.model.script([{"match": {}, "behave": {"status": 500}}])
    scene.ask(session="s0")
    reply = scene.ask(language)

    is_told(reply, "CIRCUIT_OPEN", language)
    assert int(reply.headers["Retry-After"]) > 1
    assert scene.attempts() == (1, 0)
    assert scene.counted(CHECKLIST.code("CIRCUIT_OPEN")) == 1
    assert ("circuit_open", "CIRCUIT_OPEN") in scene.alerted.told


def test_circuit_open_leads_to_the_smaller_model(make: Make) -> None:
    scene = make(breaker_failures=1, stages=NO_RETRY)
    scene.model.script(
        [
            {"name": "small", "match": {"model": SMALL}},
            {"match": {}, "behave": {"status": 500}},
        ]
    )
    replies = [scene.ask(session=f"s{number}") for number in range(2)]
    assert [reply.status_code for reply in replies] == [200, 200]
    assert replies[1].headers["Flight-Fallback"] == "smaller_model"
    assert json.loads(replies[1].data)["code"] == "CIRCUIT_OPEN"
    assert scene.attempts() == (1, 2)


@pytest.mark.parametrize("language", LANGUAGES)
def test_overload(make: Make, language: str) -> None:
    scene = make(stages={"evaluation": {"concurrency": 1, "queue": 0}})
    scene.model.script([{"match": {}, "behave": {"gate": "go"}}])
    first = gevent.spawn(scene.ask, session="s0")
    scene.model.until(open_calls=1)
    is_told(scene.ask(language), "OVERLOAD", language)
    scene.model.open_gate("go")
    first.get()
    assert scene.attempts() == (1, 0)
    assert scene.counted(CHECKLIST.code("OVERLOAD")) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_budget_exhausted(make: Make, language: str) -> None:
    times = {"timeout_ms": 500, "budget_ms": 520, "retry_delays_ms": ()}
    scene = make(stages={"evaluation": times})
    scene.model.script([{"match": {}, "behave": {"never_answer": True}}])
    is_told(scene.ask(language), "BUDGET_EXHAUSTED", language, 504)
    assert scene.attempts() == (1, 0)
    assert scene.counted(CHECKLIST.code("BUDGET_EXHAUSTED")) == 1


@pytest.mark.parametrize("module", ["evaluation", "openai"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_module_paused(make: Make, language: str, module: str) -> None:
    """New callers are refused at once; the flight in the air ends well."""
    scene = make()
    scene.model.script([{"match": {}, "behave": {"gate": "go"}}])
    flying = gevent.spawn(scene.ask)
    scene.model.until(open_calls=1)
    scene.worker.shared.switches.pause(module, by="ann", reason="it talks nonsense")
    scene.worker.shared.watch.refresh()

    reply = scene.ask(language)
    body = is_told(reply, "MODULE_PAUSED", language)
    assert int(reply.headers["Retry-After"]) >= 1
    assert body["fallback"] == "refuse"
    scene.model.open_gate("go")
    assert flying.get().status_code == 200
    assert scene.attempts() == (1, 0)

    scene.worker.shared.switches.resume(module, by="ann")
    scene.worker.shared.watch.refresh()
    assert scene.ask(language).status_code == 200


@pytest.mark.parametrize("language", LANGUAGES)
def test_result_rejected(make: Make, language: str) -> None:
    scene = make(max_result_bytes=1_024)
    judged = {"score": 1, "logic_ok": True, "missing_points": [], "feedback": "x" * 3_000}
    judged |= {"follow_up_needed": False, "follow_up_question": None}
    scene.model.script([{"match": {}, "behave": {"answer": "text", "text": json.dumps(judged)}}])
    reply = scene.ask(language)
    is_told(reply, "RESULT_TOO_LARGE", language, 500, listed_as="RESULT_REJECTED")
    assert scene.counted(CHECKLIST.code("RESULT_REJECTED")) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_too_many_waiters(make: Make, language: str) -> None:
    scene = make(max_waiters=1, worker_connections=2)
    scene.model.script([{"match": {}, "behave": {"gate": "go"}}])
    first = gevent.spawn(scene.ask, session="s0")
    scene.model.until(open_calls=1)
    is_told(scene.ask(language), "TOO_MANY_WAITERS", language)
    scene.model.open_gate("go")
    first.get()
    assert scene.counted(CHECKLIST.code("TOO_MANY_WAITERS")) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_draining(make: Make, language: str) -> None:
    scene = make()
    scene.worker.flights.drain()
    is_told(scene.ask(language), "DRAINING", language)
    assert scene.attempts() == (0, 0)


@pytest.mark.parametrize("language", LANGUAGES)
def test_coordination_unavailable(make: Make, language: str) -> None:
    scene = make(mode="distributed", url="unix:///tmp/there-is-no-redis")
    is_told(scene.ask(language), "COORDINATION_UNAVAILABLE", language)
    assert scene.attempts() == (0, 0)
    assert scene.counted(CHECKLIST.code("COORDINATION_UNAVAILABLE")) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_request_invalid(make: Make, language: str) -> None:
    """What is wrong with a request its own words say, and nothing is called."""
    scene = make()
    reply = scene.ask(language, question="")
    body = is_told(reply, "INPUT_INVALID", language, 422, listed_as="REQUEST_INVALID")
    assert body["detail"] == "question: must not be empty."
    assert scene.attempts() == (0, 0)


def test_a_fallback_answer_is_never_stored(make: Make) -> None:
    """And who asks again gets a call of the primary model, not the stand-in."""
    scene = make(stages=NO_RETRY)
    scene.model.script(
        [
            {"name": "small", "match": {"model": SMALL}},
            {"match": {"times": 1}, "behave": {"status": 402}},
        ]
    )
    first = scene.ask()
    gevent.sleep(1.1)  # for so long the failure is what a new caller is told
    second, third = scene.ask(), scene.ask()
    assert first.headers["Flight-Fallback"] == "smaller_model"
    assert "Flight-Fallback" not in second.headers
    assert "fallback" not in json.loads(second.data)
    assert third.headers.get("Flight-Role") == "l1"
    assert scene.attempts() == (2, 1)


def test_the_last_good_answer_serves_its_session_and_tenant_only(make: Make) -> None:
    scene = make()
    good = json.loads(scene.ask().data)
    scene.worker.shared.watch.wake()
    gevent.sleep(0.4)  # it is sent in the background
    other = make()  # another worker of the namespace
    other.supply("AI_QA_UNREACHABLE")

    stale = other.ask("zh", answer="Another answer.")
    body = json.loads(stale.data)
    assert (stale.status_code, stale.headers["Flight-Fallback"]) == (200, "last_good")
    assert body["warnings"] == ["stale_answer"]
    assert body["age_s"] >= 0.3
    assert {name: body[name] for name in good} == good
    assert body["message"] == CHECKLIST.code("AI_QA_UNREACHABLE").message_zh
    assert other.ask(session="s2").status_code == 503
    assert other.ask(question_number=2).status_code == 503


def test_the_third_drift_in_a_row_rolls_the_stage_back(make: Make) -> None:
    scene = make(openai_former_model="former-model")
    scene.supply("AI_MODEL_DRIFT_DETECTED")
    for number in range(2):
        scene.ask(session=f"s{number}")
    assert scene.events(0.2) == []
    scene.ask(session="s2")
    (event,) = scene.events()
    assert (event["kind"], event["model"]) == ("rollback_model", "big-model")
    with gevent.Timeout(3):
        while scene.worker.shared.watch.rolled_back("evaluation") is None:
            gevent.sleep(0.02)

    fresh = make(openai_former_model="former-model")
    fresh.model.script([{"name": "former", "match": {"model": "former-model"}}])
    assert fresh.ask(session="s9").status_code == 200
    assert fresh.model.stats()["by_rule"].get("former") == 1


def test_ten_failures_in_a_row_need_a_person_and_pause_where_the_list_says_so(make: Make) -> None:
    scene = make()
    scene.supply("AI_CRM_SYNC_LOST")
    for number in range(10):
        assert scene.ask(session=f"s{number}").status_code == 503
    with gevent.Timeout(5):
        while scene.worker.shared.watch.paused("evaluation") is None:
            gevent.sleep(0.02)
    flag = scene.worker.shared.watch.needs_person("stage:evaluation")
    assert flag is not None
    assert (flag.code, flag.failures) == ("AI_CRM_SYNC_LOST", 10)
    assert json.loads(scene.ask(session="s10").data)["code"] == "MODULE_PAUSED"
    assert {event["kind"] for event in scene.events()} == {"stop_sync"}


def test_followers_in_another_worker_get_the_fallback_too(make: Make) -> None:
    scene, other = make(), make()
    scene.model.script(
        [
            {"name": "small", "match": {"model": SMALL}},
            {"match": {}, "behave": {"status": 402, "gate": "go"}},
        ]
    )
    owner = gevent.spawn(scene.ask)
    scene.model.until(open_calls=1)
    follower = gevent.spawn(other.ask)
    gevent.sleep(0.2)
    scene.model.open_gate("go")
    replies = [owner.get(), follower.get()]
    assert [reply.headers["Flight-Fallback"] for reply in replies] == ["smaller_model"] * 2
    assert [reply.headers["Flight-Role"] for reply in replies] == ["owner", "follower"]
    assert replies[0].data == replies[1].data
    assert scene.attempts() == (1, 1)


def test_an_unknown_error_keeps_its_stack_in_the_log(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    scene = make()
    scene.supply(lambda: LookupError("words"))
    assert json.loads(scene.ask().data)["code"] == "AI_UNKNOWN_ERROR"
    (line,) = [record for record in caplog.records if record.name == "flightsvc.failure"]
    assert "LookupError" in line.__dict__["stack"]
    assert "in complete" in line.__dict__["stack"]
    assert len(line.__dict__["fingerprint"]) == 16


def test_the_log_counts_the_retries_and_names_the_fallback(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    scene = make()
    scene.supply(ProviderUnavailable)
    scene.ask()
    (line,) = [record for record in caplog.records if record.name == "flightsvc.failure"]
    assert line.__dict__["retry_count"] == 2
    assert line.__dict__["fallback_action"] == "smaller_model"
    assert line.__dict__["code"] == "PROVIDER_UNAVAILABLE"
    assert line.__dict__["warnings"] == ["smaller_model"]
