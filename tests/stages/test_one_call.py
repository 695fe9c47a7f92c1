"""The four stages: one call a question, whichever node is asked."""

from __future__ import annotations

import pytest

from tests.stages.scene import (
    ACME,
    BETA,
    BODIES,
    BUSY_MS,
    OTHER_PDF,
    OTHER_PICTURE,
    PDF,
    Nodes,
    form,
)

FIELDS = {
    "evaluations": {"score", "logic_ok", "missing_points", "feedback", "follow_up_needed"},
    "follow-ups": {"needed", "question", "reason"},
    "extractions": {"questions", "suggestions", "resume_score", "interview_type"},
    "demeanor": {"panic_level", "seriousness_level", "emoticon_handling", "composite_score"},
}


@pytest.mark.parametrize("stage", BODIES)
def test_many_callers_on_two_nodes_are_one_call(nodes: Nodes, stage: str) -> None:
    nodes.hold()
    asking = [nodes.asking(stage, node=node) for node in (nodes.one, nodes.two) * 5]
    nodes.model.until(open_calls=1)
    nodes.model.open_gate("held")

    replies = [each.get(timeout=20) for each in asking]

    assert {reply.status for reply in replies} == {200}, replies[0].body
    assert len({reply.body for reply in replies}) == 1
    assert FIELDS[stage] <= replies[0].json().keys()
    assert nodes.model.stats()["calls"] == 1
    # and afterwards it replays, on both nodes
    again = [nodes.ask(stage, node=node) for node in (nodes.one, nodes.two)]
    assert {reply.body for reply in again} == {replies[0].body}
    assert {reply.headers["flight-role"] for reply in again} <= {"replay", "l1"}
    assert nodes.model.stats()["calls"] == 1


@pytest.mark.parametrize("stage", BODIES)
def test_h21_another_tenant_has_an_answer_of_its_own(nodes: Nodes, stage: str) -> None:
    mine, theirs = nodes.ask(stage), nodes.ask(stage, headers=BETA)
    assert (mine.status, theirs.status) == (200, 200)
    assert mine.headers["flight-id"] != theirs.headers["flight-id"]
    assert nodes.model.stats()["calls"] == 2


@pytest.mark.parametrize(
    ("stage", "other"),
    [
        ("extractions", form(OTHER_PDF)),
        ("extractions", form(PDF, position="DBA")),
        ("demeanor", form(OTHER_PICTURE)),
    ],
)
def test_something_else_is_another_question(
    nodes: Nodes, stage: str, other: tuple[bytes, str]
) -> None:
    first, second = nodes.ask(stage), nodes.ask(stage, other)
    assert (first.status, second.status) == (200, 200)
    assert first.headers["flight-id"] != second.headers["flight-id"]


def test_another_name_is_the_same_file(nodes: Nodes) -> None:
    first = nodes.ask("extractions")
    second = nodes.ask("extractions", form(PDF, "../../履历书.pdf"))
    assert second.headers["flight-id"] == first.headers["flight-id"]
    assert nodes.model.stats()["calls"] == 1


# -- the session lock --------------------------------------------------------------------------


def test_another_file_of_the_session_waits_for_the_first(nodes: Nodes) -> None:
    nodes.hold("first")
    first = nodes.asking("extractions")
    nodes.model.until(open_calls=1)
    nodes.model.script([])
    second = nodes.asking("extractions", form(OTHER_PDF), node=nodes.two)
    nodes.await_flights(2)
    assert nodes.model.stats()["calls"] == 1
    nodes.model.open_gate("first")
    assert (first.get(timeout=20).status, second.get(timeout=20).status) == (200, 200)
    stats = nodes.model.stats()
    assert (stats["calls"], stats["max_open_calls"]) == (2, 1)


def test_another_file_does_not_wait_for_ever(nodes: Nodes) -> None:
    nodes.hold()
    first = nodes.asking("extractions")
    nodes.model.until(open_calls=1)

    second = nodes.ask("extractions", form(OTHER_PDF), node=nodes.two)

    assert (second.status, second.json()["code"]) == (409, "SESSION_BUSY")
    assert int(second.headers["retry-after"]) >= 1
    # another session, another stage, another tenant do not wait at all
    assert nodes.model.stats()["calls"] == 1
    nodes.model.script([])
    assert nodes.ask("evaluations").status == 200
    assert nodes.ask("demeanor").status == 200
    assert nodes.ask("extractions", headers=BETA).status == 200
    nodes.model.open_gate("held")
    assert first.get(timeout=20).status == 200
    # and it can be asked again
    assert nodes.ask("extractions", form(OTHER_PDF), node=nodes.two).status == 200


def test_the_wait_for_the_session_is_not_taken_from_the_call(nodes: Nodes) -> None:
    assert BUSY_MS < 5_000
    nodes.hold("first")
    first = nodes.asking("extractions")
    nodes.model.until(open_calls=1)
    nodes.hold("second")
    second = nodes.asking("extractions", form(OTHER_PDF))
    nodes.model.open_gate("first")
    nodes.model.until(calls=2, open_calls=1)
    nodes.model.open_gate("second")
    assert {first.get(timeout=20).status, second.get(timeout=20).status} == {200}


# -- what is refused before any model is asked -------------------------------------------------


@pytest.mark.parametrize("stage", BODIES)
def test_h38_a_body_over_the_limit_is_refused(nodes: Nodes, stage: str) -> None:
    size = 11 * 1024 * 1024
    body = form(b"%PDF-1.7\n" + bytes(size))
    if stage in ("evaluations", "follow-ups"):
        body = (b'{"answer": "' + b"x" * size + b'"}', "application/json")
    reply = nodes.ask(stage, body)
    assert (reply.status, reply.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")
    assert nodes.model.stats()["calls"] == 0
    assert nodes.get().status == 404


@pytest.mark.parametrize(
    ("change", "field"),
    [({"question_count": "0"}, "question_count"), ({"positon": "x"}, "positon")],
)
def test_a_wrong_field_of_a_form_is_named(
    nodes: Nodes, change: dict[str, str], field: str
) -> None:
    reply = nodes.ask("extractions", form(PDF, **change))
    assert reply.status == 422
    assert field in reply.json()["detail"]
    assert nodes.model.stats()["calls"] == 0


def test_who_has_no_token_uploads_nothing(nodes: Nodes) -> None:
    reply = nodes.ask("extractions", headers={"Authorization": "Bearer nobody"})
    assert (reply.status, reply.json()["code"]) == (401, "UNAUTHENTICATED")
    assert ACME["Authorization"] != "Bearer nobody"
