"""AI_INPUT_EMPTY, what stands in for an answer, and who asks again what something stood in for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gevent
import pytest
from werkzeug.test import TestResponse

from flightsvc.interview.templates import template
from flightsvc.store import Names
from tests.golden.scene import SMALL, Scene
from tests.golden.telling import LANGUAGES, NO_RETRY, Make, is_told, listed
from tests.processes import wait_until

FOLLOW_UP = {
    "current_question": "What is a fence?",
    "answer": " \n",
    "follow_up_count": 0,
    "max_follow_up": 2,
}


def stands_in(reply: TestResponse, action: str, code: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(reply.data)
    assert (reply.status_code, body["code"]) == (200, code), body
    assert reply.headers["Flight-Fallback"] == body["fallback"] == action
    assert reply.headers["Cache-Control"] == "no-store"
    return body


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("answer", ["", " \u3000\n", "\u200b"])
def test_an_empty_answer_is_guided_at_once(make: Make, language: str, answer: str) -> None:
    """The template for the stage; no model, no retry, nobody is woken and nothing changes."""
    scene = make()
    reply = scene.ask(language, answer=answer)

    body = stands_in(reply, "template", "AI_INPUT_EMPTY")
    said = template("guide", "evaluation")
    assert said is not None
    assert body["message"] == said[language]
    assert "score" not in body
    assert scene.attempts() == (0, 0)
    assert scene.took_s < 0.5
    assert scene.events(0.2) == []
    assert listed("AI_INPUT_EMPTY").alert is None
    assert (listed("AI_INPUT_EMPTY").trips_after, scene.alerted.told) == (0, [])
    row = scene.app.test_client().get("/v1/interviews/s1").get_json()
    assert "template" not in json.dumps(row)  # it is no answer, so no row either


def test_it_has_its_line_in_the_log(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    make().ask(answer="")
    (line,) = [record for record in caplog.records if record.name == "flightsvc.failure"]
    said = line.__dict__
    assert (said["code"], said["fallback_action"]) == ("AI_INPUT_EMPTY", "template")
    assert (said["retry_count"], said["input_length"]) == (0, len("What is a fence?"))


def test_a_follow_up_to_nothing_is_guided_too(make: Make) -> None:
    scene = make()
    client = scene.app.test_client()
    reply = client.post("/v1/interviews/s1/follow-ups", json=FOLLOW_UP)
    body = stands_in(reply, "template", "AI_INPUT_EMPTY")
    assert body["message"].startswith("There is no answer to ask about yet.")
    # where no more may be asked, that is the answer, whatever was said
    none_left = client.post("/v1/interviews/s1/follow-ups", json={**FOLLOW_UP, "max_follow_up": 0})
    assert (none_left.status_code, none_left.get_json()["needed"]) == (200, False)
    assert scene.attempts() == (0, 0)


def test_what_the_list_says_of_it_is_obeyed(make: Make, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("[codes.AI_INPUT_EMPTY]\nfallback = 'refuse'\n")
    scene = make(checklist_file=str(own))
    body = is_told(scene.ask("zh", answer=" "), "AI_INPUT_EMPTY", "zh", 422)
    assert body["fallback"] == "refuse"
    assert scene.attempts() == (0, 0)


def test_a_paused_stage_guides_nobody(make: Make) -> None:
    scene = make()
    scene.worker.shared.switches.pause("evaluation", by="ann", reason="x")
    scene.worker.shared.watch.refresh()
    is_told(scene.ask("zh", answer=""), "MODULE_PAUSED", "zh")


@pytest.mark.parametrize("code", ["AI_MODEL_CONFIDENCE_LOW", "AI_ORDER_NOT_FOUND"])
def test_who_asks_again_gets_the_same_words_and_no_second_call_is_made(
    make: Make, code: str
) -> None:
    """Here, and at another worker: the failure is remembered, and so is what stands in for it."""
    scene, other = make(), make()
    scene.supply(code)
    other.supply(code)
    first, again, elsewhere = scene.ask("zh"), scene.ask("zh"), other.ask("en")

    action = listed(code).fallback.action
    bodies = [stands_in(reply, action, code) for reply in (first, again, elsewhere)]
    assert bodies[0] == bodies[1]
    assert bodies[2]["message"] == listed(code).message_en
    assert (scene.attempts()[0], other.attempts()[0]) == (1, 0)
    assert [event["code"] for event in scene.events()] == [code]  # once, too
    assert again.headers["Flight-Id"] == first.headers["Flight-Id"]


def again_after(scene: Scene, reply: TestResponse, **asked: Any) -> TestResponse:
    gevent.sleep(float(reply.headers.get("Retry-After", 0)))
    return scene.ask(**asked)


def test_who_asks_again_what_was_too_long_gets_a_shortened_answer_again(make: Make) -> None:
    """Not the failure for a minute, which says that only the beginning was used."""
    scene, text = make(stages=NO_RETRY), "x" * 3_000
    error = {"error": {"message": "no", "code": "context_length_exceeded", "type": "invalid"}}
    scene.model.script([{"match": {"body_contains": text}, "behave": {"body": error}}])
    for _ in range(2):
        body = stands_in(scene.ask(answer=text), "truncate", "AI_MODEL_OOM")
        assert body["warnings"] == ["input_truncated"]
        gevent.sleep(0.1)
    assert scene.attempts() == (4, 0)


@pytest.mark.parametrize(("text", "most"), [("x" * 9_000, 2_100), ("很长的回答。" * 700, 600)])
def test_the_model_sees_the_beginning_and_a_marker_and_the_user_is_told(
    make: Make, text: str, most: int, caplog: pytest.LogCaptureFixture
) -> None:
    """About 512 tokens of it: four letters are one, and so is a Chinese character."""
    scene = make(stages=NO_RETRY)
    error = {"error": {"message": "no", "code": "context_length_exceeded", "type": "invalid"}}
    scene.model.script(
        [
            {"name": "long", "match": {"body_contains": text[:most]}, "behave": {"body": error}},
            {"name": "cut", "match": {"body_contains": "[TRUNCATED]"}},
            {"name": "neither", "match": {}, "behave": {"status": 400}},
        ]
    )
    body = stands_in(scene.ask("zh", answer=text), "truncate", "AI_MODEL_OOM")
    assert scene.model.stats()["by_rule"] == {"long": 1, "cut": 1}
    assert body["warnings"] == ["input_truncated"]
    assert body["message"] == listed("AI_MODEL_OOM").message_zh
    assert 0 <= body["score"] <= 100
    (line,) = [record for record in caplog.records if record.name == "flightsvc.failure"]
    assert (line.levelname, line.__dict__["warnings"]) == ("WARNING", ["input_truncated"])
    assert line.__dict__["code"] == "AI_MODEL_OOM"


def test_who_asks_again_what_the_smaller_model_answered_is_answered(make: Make) -> None:
    scene = make(stages=NO_RETRY)
    scene.model.script(
        [{"name": "small", "match": {"model": SMALL}}, {"match": {}, "behave": {"status": 402}}]
    )
    first = scene.ask()
    second = again_after(scene, first)
    for reply in (first, second):
        stands_in(reply, "smaller_model", "PROVIDER_QUOTA_EXHAUSTED")


def fetched(scene: Scene, reply: TestResponse, language: str = "en") -> TestResponse:
    """The same, as it is found later."""
    flight_id = reply.headers["Flight-Id"]
    return scene.app.test_client().get(
        f"/v1/interviews/s1/evaluations/{flight_id}", headers={"Accept-Language": language}
    )


def forget_what_was_told(scene: Scene, reply: TestResponse) -> None:
    """As half a minute later."""
    names = Names(scene.namespace, scene.settings.flight_shards)
    assert scene.redis.delete(names.flight(reply.headers["Flight-Id"])["events"]) == 1


@pytest.mark.parametrize("told", [True, False], ids=["at once", "later"])
@pytest.mark.parametrize(
    "code", ["AI_MODEL_CONFIDENCE_LOW", "AI_ORDER_NOT_FOUND", "AI_INFRA_MAINTENANCE"]
)
def test_what_stood_in_is_found_later(make: Make, code: str, told: bool) -> None:
    scene, other = make(), make()
    scene.supply(code)
    first = scene.ask("zh")
    if not told:
        forget_what_was_told(scene, first)

    for worker in (scene, other):
        found = fetched(worker, first, "zh")
        body = stands_in(found, listed(code).fallback.action, code)
        assert body == json.loads(first.data)
        assert found.headers["Content-Language"] == "zh"
        assert found.headers["Flight-Role"] == "replay"
        assert found.headers["Flight-Fence"] == first.headers["Flight-Fence"]
        english = json.loads(fetched(worker, first, "en").data)
        assert english["message"] != body["message"]
    assert scene.attempts()[0] == 1


def test_another_route_s_answer_is_found_later_while_it_is_remembered(make: Make) -> None:
    """Then there is the failure alone: such an answer is not stored."""
    scene = make(stages=NO_RETRY)
    scene.model.script(
        [{"name": "small", "match": {"model": SMALL}}, {"match": {}, "behave": {"status": 402}}]
    )
    first = scene.ask()

    body = stands_in(fetched(scene, first), "smaller_model", "PROVIDER_QUOTA_EXHAUSTED")

    assert body == json.loads(first.data)
    forget_what_was_told(scene, first)
    is_told(fetched(scene, first), "PROVIDER_QUOTA_EXHAUSTED", "en")


def test_what_stood_in_is_forgotten_with_its_session(make: Make) -> None:
    scene = make()
    first = scene.ask(answer=" ")
    assert fetched(scene, first).status_code == 200

    assert scene.app.test_client().delete("/v1/interviews/s1").status_code == 204

    wait_until(lambda: fetched(scene, first).status_code == 410)
    assert json.loads(fetched(scene, first).data)["code"] == "SESSION_FORGOTTEN"
