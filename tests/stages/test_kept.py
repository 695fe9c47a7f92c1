"""What is kept of an interview, and how it is forgotten."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import gevent
import pytest

from flightsvc.interview.stage_call import LATE_S
from tests.files.samples import blank_pdf, encrypted_pdf, scanned_pdf, text_pdf
from tests.processes import wait_until
from tests.stages.scene import BETA, BODIES, OTHER_PDF, PDF, Nodes, form
from tests.support.service import Service

KINDS = {
    "evaluations": "evaluations",
    "follow-ups": "follow_ups",
    "extractions": "question_sets",
    "demeanor": "demeanor",
}


def rows(nodes: Nodes, stage: str, node: Service | None = None) -> list[dict[str, object]]:
    reply = nodes.get(node=node)
    found: list[dict[str, object]] = reply.json()[KINDS[stage]] if reply.status == 200 else []
    return found


def files(node: Service) -> list[Path]:
    """Everything that a node's store holds."""
    return [path for path in (node.data_dir / "files").rglob("*") if path.is_file()]


@pytest.mark.parametrize("stage", BODIES)
def test_an_answer_makes_one_row(nodes: Nodes, stage: str) -> None:
    replies = [nodes.ask(stage) for _ in range(3)]
    (row,) = rows(nodes, stage)
    assert row["answer"] == replies[0].json()
    assert row["flight_id"] == replies[0].headers["flight-id"]
    assert row["fence"] == int(replies[0].headers["flight-fence"])
    assert nodes.get(headers=BETA).status == 404


def test_a_report_of_everything(nodes: Nodes) -> None:
    for stage in BODIES:
        assert nodes.ask(stage).status == 200
    page = nodes.get("/report", headers={"Accept-Language": "zh-CN"})
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "What is a B-tree?" in page.body.decode()
    assert nodes.get("/report", headers=BETA).status == 404


def test_a_replay_writes_the_row_that_is_not_there(nodes: Nodes) -> None:
    first = nodes.ask("extractions")
    assert rows(nodes, "extractions", nodes.two) == []  # each node has a database of its own here
    again = nodes.ask("extractions", node=nodes.two)
    assert again.headers["flight-role"] == "replay"
    (row,) = rows(nodes, "extractions", nodes.two)
    assert row["flight_id"] == first.headers["flight-id"]


@pytest.mark.parametrize("stage", BODIES)
def test_a_deleted_session_is_gone_everywhere(nodes: Nodes, stage: str) -> None:
    first = nodes.ask(stage)
    assert nodes.ask(stage, node=nodes.two).status == 200
    calls = nodes.model.stats()["calls"]

    assert nodes.delete(headers=BETA).status == 204  # another tenant's session of that name
    assert nodes.get().status == 200
    assert nodes.delete().status == 204

    assert nodes.get().status == 404
    flight = f"/v1/flights/{first.headers['flight-id']}"
    assert nodes.one.get(flight, headers={"Authorization": "Bearer token-acme"}).status == 404
    if stage in ("extractions", "demeanor"):
        assert not [path for path in files(nodes.one) if path.name in repr(first.body)]
    # no worker remembers it: within a second also the other node's own memory is empty
    wait_until(lambda: nodes.ask(stage, node=nodes.two).headers["flight-role"] != "l1", 5)
    assert nodes.model.stats()["calls"] == calls + 1


def test_a_file_goes_with_its_last_session(nodes: Nodes) -> None:
    cv = text_pdf(f"Somebody of {nodes.session}")
    before = len(files(nodes.one))
    nodes.ask("extractions", form(cv))
    other = nodes.session + "b"
    body, kind = form(cv)
    reply = nodes.one.get(
        f"/v1/interviews/{other}/extractions",
        method="POST",
        body=body,
        headers={"Authorization": "Bearer token-acme", "Content-Type": kind},
    )
    assert reply.status == 200
    assert len(files(nodes.one)) == before + 1
    nodes.delete()
    assert len(files(nodes.one)) == before + 1
    nodes.at = f"/v1/interviews/{other}"
    nodes.delete()
    assert len(files(nodes.one)) == before


def test_a_session_that_is_deleted_while_it_is_asked_about(nodes: Nodes) -> None:
    nodes.hold()
    asking = nodes.asking("extractions")
    nodes.model.until(open_calls=1)
    assert nodes.delete(node=nodes.two).status == 204
    # the owner's node hears of it within a second
    wait_until(lambda: nodes.heard_of_the_deletion(), 5)
    nodes.model.open_gate("held")
    reply = asking.get(timeout=20)
    assert (reply.status, reply.json()["code"]) == (410, "SESSION_FORGOTTEN")
    assert nodes.get().status == 404


def test_a_deleted_flight_is_asked_anew(nodes: Nodes) -> None:
    first = nodes.ask("evaluations")
    flight = f"/v1/flights/{first.headers['flight-id']}"
    assert nodes.one.get(flight, method="DELETE", headers=BETA).status == 404
    mine = {"Authorization": "Bearer token-acme"}
    assert nodes.one.get(flight, method="DELETE", headers=mine).status == 204
    assert nodes.one.get(flight, method="DELETE", headers=mine).status == 404
    assert nodes.ask("evaluations").headers["flight-role"] == "owner"
    assert nodes.model.stats()["calls"] == 2


def test_a_row_of_a_former_owner_does_not_replace_a_newer_one(nodes: Nodes) -> None:
    nodes.ask("evaluations")
    database = sqlite3.connect(nodes.one.data_dir / "records.sqlite3")
    with database:
        database.execute(
            "UPDATE flightsvc_records SET fence = fence + 1000000000000 WHERE session_id = ?",
            (nodes.session,),
        )
    database.close()
    (newer,) = rows(nodes, "evaluations")
    client = nodes.redis.client()
    names = nodes.names.flight(str(newer["flight_id"]))
    client.delete(names["meta"], names["result"])
    nodes.ask("evaluations", node=nodes.two)
    assert rows(nodes, "evaluations") == [newer]


# -- files that hold nothing to ask about -------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (scanned_pdf(), 422, "NO_TEXT"),
        (blank_pdf(), 422, "NO_TEXT"),
        (text_pdf("   "), 422, "NO_TEXT"),
        (encrypted_pdf("secret", "AES-256"), 422, "FILE_ENCRYPTED"),
        (PDF[:200], 422, "FILE_UNREADABLE"),
        (b"<html>", 415, "FILE_TYPE_UNSUPPORTED"),
        (b"", 422, "FILE_UNREADABLE"),
    ],
    ids=["scanned", "blank", "white", "encrypted", "cut", "html", "empty"],
)
def test_h39_a_file_without_text_costs_no_call(
    nodes: Nodes, content: bytes, status: int, code: str
) -> None:
    asking = [nodes.asking("extractions", form(content), node=n) for n in (nodes.one, nodes.two)]
    for reply in (each.get(timeout=20) for each in asking):
        assert (reply.status, reply.json()["code"]) == (status, code), reply.body
        assert {"message", "detail"} <= reply.json().keys()
    assert nodes.model.stats()["calls"] == 0
    assert nodes.get().status == 404


def test_a_file_with_an_empty_password_is_read(nodes: Nodes) -> None:
    assert nodes.ask("extractions", form(encrypted_pdf("", "AES-256"))).status == 200


def test_a_pdf_is_no_picture_and_a_picture_no_pdf(nodes: Nodes) -> None:
    assert nodes.ask("demeanor", form(OTHER_PDF)).json()["code"] == "FILE_TYPE_UNSUPPORTED"
    swapped = nodes.ask("extractions", BODIES["demeanor"])
    assert swapped.json()["code"] == "FILE_TYPE_UNSUPPORTED"
    assert nodes.model.stats()["calls"] == 0


# -- what comes late ----------------------------------------------------------------------------


def test_a_question_that_is_asked_after_the_deletion_is_a_new_one(shared: Nodes) -> None:
    shared.hold()
    asking = shared.asking("evaluations")
    shared.model.until(open_calls=1)
    assert shared.delete(node=shared.two).status == 204
    shared.model.open_gate("held")
    assert asking.get(timeout=20).json()["code"] == "SESSION_FORGOTTEN"
    again = shared.ask("evaluations")
    assert (again.status, again.headers["flight-role"]) == (200, "owner")
    assert len(rows(shared, "evaluations")) == 1


def test_a_deletion_that_no_worker_heard_of_yet_holds_all_the_same(shared: Nodes) -> None:
    shared.hold()
    asking = shared.asking("evaluations")
    shared.model.until(open_calls=1)
    # at one stroke: no worker looks in between
    assert shared.delete(node=shared.two).status == 204
    shared.model.open_gate("held")
    assert asking.get(timeout=20).status == 410
    assert shared.get().status == 404


def test_an_answer_without_a_row_does_not_come_back_after_the_deletion(shared: Nodes) -> None:
    with shared.database_away():
        first = shared.ask("evaluations")
    assert (first.status, shared.get().status) == (200, 404)
    assert shared.delete(node=shared.two).status == 204
    shared.forget_the_marks()  # as they do after ten minutes
    for node in (shared.two, shared.one):
        again = shared.ask("evaluations", node=node)
        assert again.status == 200
        assert int(again.headers["flight-fence"]) > int(first.headers["flight-fence"])
    assert shared.model.stats()["calls"] == 2


def test_a_follower_that_takes_over_heard_of_the_deletion(shared: Nodes) -> None:
    shared.hold()
    mine = shared.asking("evaluations")
    shared.model.until(open_calls=1)
    theirs = shared.asking("evaluations", node=shared.two)
    shared.await_following()
    gevent.sleep(2 * LATE_S)  # it is older than any call that begins at once
    assert shared.delete().status == 204
    shared.model.open_gate("held")
    for asking in (mine, theirs):
        assert asking.get(timeout=20).json()["code"] == "SESSION_FORGOTTEN"
    assert shared.get().status == 404
