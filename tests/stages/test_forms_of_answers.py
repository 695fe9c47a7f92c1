"""An answer step by step, and later."""

from __future__ import annotations

import json
import time

import pytest

from tests.files.samples import blank_pdf
from tests.stages.scene import BETA, BODIES, EVALUATION, OTHER_PDF, Nodes, events, form, steps


def test_progress_of_an_owner(nodes: Nodes) -> None:
    reply = nodes.ask("extractions", query="?progress=1")

    assert reply.headers["content-type"] == "text/event-stream"
    assert reply.headers["x-accel-buffering"] == "no"
    assert steps(reply) == ["received", "locked", "waiting", "running", "stored"]
    name, told = events(reply)[-1]
    assert (name, told["role"], told["fallback"]) == ("stored", "owner", None)
    assert told["answer"] == nodes.ask("extractions").json()
    assert told["flight_id"] == reply.headers["flight-id"]


def test_progress_of_followers_here_and_elsewhere(nodes: Nodes) -> None:
    nodes.hold()
    owner = nodes.asking("extractions", query="?progress=1")
    nodes.model.until(open_calls=1)
    here = nodes.asking("extractions", query="?progress=1")
    elsewhere = nodes.asking("extractions", node=nodes.two, query="?progress=1")
    time.sleep(1.5)  # a follower elsewhere looks once a second
    nodes.model.open_gate("held")

    assert steps(owner.get(timeout=20))[-2:] == ["running", "stored"]
    for asking in (here, elsewhere):
        reply = asking.get(timeout=20)
        assert steps(reply) == ["received", "running", "stored"]
        assert events(reply)[-1][1]["role"] == "follower"
    assert nodes.model.stats()["calls"] == 1


def test_progress_of_what_waits_for_its_session(nodes: Nodes) -> None:
    nodes.hold()
    first = nodes.asking("extractions")
    nodes.model.until(open_calls=1)
    reply = nodes.ask("extractions", form(OTHER_PDF), query="?progress=1")
    name, told = events(reply)[-1]
    assert (steps(reply)[0], told["code"]) == ("received", "SESSION_BUSY")
    assert "running" not in steps(reply)
    assert (reply.status, name, told["status"]) == (200, "error", 409)
    nodes.model.open_gate("held")
    assert first.get(timeout=20).status == 200


def test_progress_of_a_replay(nodes: Nodes) -> None:
    nodes.ask("extractions")
    assert steps(nodes.ask("extractions", query="?progress=1")) == ["received", "stored"]


def test_what_is_refused_at_the_door_is_refused_plainly(nodes: Nodes) -> None:
    reply = nodes.ask("extractions", form(OTHER_PDF, unknown="x"), query="?progress=1")
    assert reply.status == 422
    assert reply.headers["content-type"] == "application/problem+json"


# -- later ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", BODIES)
def test_an_answer_is_fetched_later_from_either_node(nodes: Nodes, stage: str) -> None:
    nodes.hold()
    reply = nodes.ask(stage, headers={"Prefer": "respond-async"})
    assert reply.status == 202, reply.body
    assert reply.headers["preference-applied"] == "respond-async"
    where = reply.headers["location"]
    assert where.startswith(f"/v1/interviews/{nodes.session}/{stage}/")
    nodes.model.until(open_calls=1)
    for node in (nodes.one, nodes.two):
        again = node.get(where, headers={"Authorization": "Bearer token-acme"})
        assert (again.status, again.headers["location"]) == (202, where)
        assert int(again.headers["retry-after"]) >= 1
        assert node.get(where, headers=BETA).status == 404

    nodes.model.open_gate("held")
    expected = nodes.ask(stage, node=nodes.two)
    found = nodes.one.get(where, headers={"Authorization": "Bearer token-acme"})
    assert (found.status, found.json()) == (200, expected.json())
    assert found.headers["flight-role"] == "replay"
    assert found.headers["flight-id"] == reply.json()["flight_id"] == expected.headers["flight-id"]
    assert nodes.model.stats()["calls"] == 1


def test_who_would_ask_later_has_at_once_what_is_there(nodes: Nodes) -> None:
    first = nodes.ask("evaluations")
    again = nodes.ask("evaluations", headers={"Prefer": "respond-async, wait=10"})
    assert (again.status, again.body) == (200, first.body)


def test_a_failure_is_found_later(nodes: Nodes) -> None:
    nodes.model.script({"rules": [], "default": {"gate": "held", "text": "no", "answer": "text"}})
    where = nodes.ask("extractions", headers={"Prefer": "respond-async"}).headers["location"]
    nodes.model.until(open_calls=1)
    nodes.model.open_gate("held")
    waiting = nodes.ask("extractions")
    for node in (nodes.one, nodes.two):
        found = node.get(where, headers={"Authorization": "Bearer token-acme"})
        assert (found.status, found.json()["code"]) == (waiting.status, waiting.json()["code"])
    assert waiting.json()["code"] == "AI_MODEL_OUTPUT_MALFORMED"


def test_what_stands_in_is_found_later_too(nodes: Nodes) -> None:
    """On either node, for its own tenant, in the language of whoever looks."""
    blank = json.dumps({**EVALUATION, "answer": " "}).encode(), "application/json"
    later = {"Prefer": "respond-async, wait=20"}
    reply = nodes.ask("evaluations", blank, headers=later)
    assert (reply.status, reply.json()["fallback"]) == (200, "template")
    where = f"/evaluations/{reply.headers['flight-id']}"

    for node in (nodes.one, nodes.two):
        found = nodes.get(where, node=node)
        assert (found.status, found.json()) == (200, reply.json())
        assert found.headers["flight-fallback"] == "template"
        assert nodes.get(where, node=node, headers=BETA).status == 404
        chinese = nodes.get(where, node=node, headers={"Accept-Language": "zh"})
        assert chinese.headers["content-language"] == "zh"
        assert chinese.json()["message"] != found.json()["message"]
    again = nodes.ask("evaluations", blank, node=nodes.two)
    assert (again.status, again.json()) == (200, reply.json())
    assert nodes.model.stats()["calls"] == 0


def test_what_nobody_asked_is_not_found(nodes: Nodes) -> None:
    for flight_id in ("0" * 32, "x"):
        assert nodes.get(f"/extractions/{flight_id}").status == 404


def test_an_answer_is_not_found_at_another_stage(nodes: Nodes) -> None:
    flight_id = nodes.ask("evaluations").headers["flight-id"]
    found = {stage: nodes.get(f"/{stage}/{flight_id}").status for stage in BODIES}
    assert found == {**dict.fromkeys(BODIES, 404), "evaluations": 200}


def test_a_file_that_says_nothing_is_refused_later_too(nodes: Nodes) -> None:
    later = {"Prefer": "respond-async, wait=20"}
    reply = nodes.ask("extractions", form(blank_pdf()), headers=later)
    assert (reply.status, reply.json()["code"]) == (422, "NO_TEXT")
