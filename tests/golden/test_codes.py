"""Every code of the list through the real guard, as a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from flightsvc.checklist import load_checklist
from flightsvc.settings import Settings
from tests.golden.scene import SMALL, Scene
from tests.golden.table import CONDITIONS, ROWS, Row

CHECKLIST = load_checklist(Settings())


def test_every_code_has_its_row() -> None:
    assert set(ROWS) | CONDITIONS == set(CHECKLIST.codes)
    assert not set(ROWS) & CONDITIONS


def provoke(scene: Scene, code: str, row: Row) -> None:
    rules: list[dict[str, Any]] = [{"name": "small", "match": {"model": SMALL}}]
    if row.behave is None:
        scene.supply(code)
    elif code == "AI_MODEL_OOM":  # takes the input once it is short
        long = {"match": {"body_contains": "x" * 3_000}, "behave": row.behave}
        rules.append(long)
    else:
        rules.append({"match": {}, "behave": row.behave})
    scene.model.script(rules)


@pytest.mark.parametrize("language", ["zh-CN,zh;q=0.9", "en"])
@pytest.mark.parametrize("code", ROWS)
def test_a_code_is_obeyed(make: Callable[..., Scene], code: str, language: str) -> None:
    row, scene, listed = ROWS[code], make(), CHECKLIST.code(code)
    provoke(scene, code, row)

    reply = scene.ask(language, answer="x" * 3_000)
    body = json.loads(reply.data)

    assert scene.attempts() == (row.attempts, row.small)
    assert scene.took_s >= row.waits_s
    assert reply.status_code == row.status, body
    assert reply.headers.get("Flight-Fallback", "") == row.fallback
    assert body.get("fallback", "") == row.fallback
    assert body["code"] == code
    said = body.get("message" if row.status == 200 else "detail", "")
    if row.fallback not in ("smaller_model", "template") and listed.message_en:
        assert said == listed.message(language)
    if row.status == 200:
        assert isinstance(body["warnings"], list)
    else:
        assert reply.content_type == "application/problem+json"
    check_state(scene, row, code)
    check_alert(scene, row, code)


def check_state(scene: Scene, row: Row, code: str) -> None:
    events = scene.events(2.0 if row.event else 0.2)
    assert [(event["kind"], event["code"]) for event in events] == (
        [(row.event, code)] if row.event else []
    )
    if events:
        (event,) = events
        assert (event["session_id"], event["stage"]) == ("s1", "evaluation")
        assert event["flight_id"]


def check_alert(scene: Scene, row: Row, code: str) -> None:
    listed = CHECKLIST.code(code)
    assert (listed.alert.name if listed.alert else "") == row.alert
    if row.alert:
        assert scene.counted(listed) == 1
        assert scene.alerted.told == ([(row.alert, code)] if row.at_once else [])
