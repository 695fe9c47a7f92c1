"""examples/legacy_backend under gunicorn: two nodes, ours and its own configuration, one Redis."""

from __future__ import annotations

import difflib
import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gevent
import pytest

from examples.legacy_backend import before
from flightsvc.model_server.process import ModelServerProcess
from tests.examples.backend import FORM, LOGIN, Person, answer, node, rule
from tests.processes import ROOT, wait_until
from tests.readme_pages import block, blocks
from tests.support.redis_server import RedisServer
from tests.support.service import Service, ask

EXAMPLE = ROOT / "examples" / "legacy_backend"
EVALUATION = {"question_number": 1, "question": "What is a B-tree?", "answer": "A tree."}


class Nodes(NamedTuple):
    """Two nodes of one backend.

    :param ours: with our gunicorn configuration; ``own`` with the backend's.
    """

    ours: Service
    own: Service
    model: ModelServerProcess
    folder: Path


@pytest.fixture(scope="module")
def model_server() -> Iterator[ModelServerProcess]:
    with ModelServerProcess() as model:
        yield model


@pytest.fixture(scope="module")
def started(
    model_server: ModelServerProcess,
    redis_server: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Nodes]:
    folder, namespace = tmp_path_factory.mktemp("hr"), "t-" + os.urandom(6).hex()
    ours = node(folder, redis_server, model_server, namespace)
    own = node(folder, redis_server, model_server, namespace, own=True)
    try:
        ours.start(probe=LOGIN)
        own.start(probe=LOGIN)
        yield Nodes(ours, own, model_server, folder)
    finally:
        ours.close()
        own.close()


@pytest.fixture
def nodes(started: Nodes) -> Nodes:
    started.model.reset()
    return started


@pytest.fixture
def ada(nodes: Nodes) -> Person:
    return Person("ada", nodes.ours)


@pytest.fixture
def grace(nodes: Nodes) -> Person:
    return Person("grace", nodes.own)


def test_double_clicks_on_all_workers_are_one_call(nodes: Nodes, ada: Person) -> None:
    said = answer()
    nodes.model.script([rule(said, gate="open")])

    clicks = [ada.grading(nodes.ours, said)]
    nodes.model.until(calls=1)
    clicks += [ada.grading(service, said) for service in (*nodes[:2],) * 4]
    wait_until(lambda: ada.followers(nodes.ours, said) >= 1)
    nodes.model.open_gate("open")

    replies = [click.get(timeout=30) for click in clicks]
    assert {(reply.status, reply.body) for reply in replies} == {
        (200, b'{"grading":{"score":70}}\n')
    }
    again = ada.grade(nodes.own, f"  {said}\r\n")
    assert again.json() == {"grading": {"score": 70}}
    assert nodes.model.stats()["calls"] == 1
    assert ada.get(nodes.own, "/hr/gradings").json() == {"gradings": {"1": {"score": 70}}}
    rows = sqlite3.connect(nodes.folder / "hr.sqlite").execute("SELECT user, number FROM gradings")
    assert rows.fetchall() == [("ada", 1)]


def test_before_each_click_was_a_call(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = answer()
    nodes.model.script([rule(said)])
    monkeypatch.setenv("HR_DATABASE", str(tmp_path / "hr.sqlite"))
    monkeypatch.setenv("HR_MODEL_URL", nodes.model.base_url)
    client = before.create_app().test_client()
    client.post(LOGIN, data={"user": "ada", "password": "ada-secret"})

    replies = [client.post("/hr/gradings/1", data={"answer": said}) for _ in range(2)]

    assert [reply.json for reply in replies] == [{"grading": {"score": 70}}] * 2
    assert nodes.model.stats()["calls"] == 2


def test_the_mounted_interview_is_one_call_too(nodes: Nodes, ada: Person) -> None:
    where = f"/hr/ai/v1/interviews/s-{os.urandom(4).hex()}/evaluations"

    asking = [
        gevent.spawn(ada.post, service, where, EVALUATION) for service in (*nodes[:2],) * 3
    ]
    replies = [each.get(timeout=30) for each in asking]

    assert {reply.status for reply in replies} == {200}
    assert len({reply.body for reply in replies}) == 1
    assert nodes.model.stats()["calls"] == 1


@pytest.mark.parametrize("which", ["ours", "own"])
def test_the_login_stands_in_front(nodes: Nodes, which: str) -> None:
    service: Service = getattr(nodes, which)
    session = "/hr/ai/v1/interviews/s-1"

    form = ask(service.url + "/hr/gradings/1", "POST", body=b"answer=x", headers=FORM)
    judged = service.post(session + "/evaluations", EVALUATION)
    forged = ask(service.url + session, headers={"Cookie": "session=eyJ1c2VyIjoiYWRhIn0.x.x"})

    assert (form.status, form.headers["location"]) == (302, LOGIN)
    assert (judged.status, judged.json()["code"]) == (401, "UNAUTHENTICATED")
    assert (forged.status, forged.json()["code"]) == (401, "UNAUTHENTICATED")
    assert nodes.model.stats()["calls"] == 0


def test_people_share_nothing(nodes: Nodes, ada: Person, grace: Person) -> None:
    said, session = answer(), f"/hr/ai/v1/interviews/s-{os.urandom(4).hex()}"
    nodes.model.script([rule(said)])

    for person in (ada, grace):
        assert person.grade(nodes.ours, said).status == 200
    assert nodes.model.stats()["calls"] == 2

    mine = ada.post(nodes.ours, session + "/evaluations", EVALUATION)
    flight = "/hr/ai/v1/flights/" + mine.headers["flight-id"]
    assert [person.get(nodes.own, flight).status for person in (ada, grace)] == [200, 404]
    assert [person.get(nodes.own, session).status for person in (ada, grace)] == [200, 404]
    later = f"{session}/evaluations/{mine.headers['flight-id']}"
    assert [person.get(nodes.own, later).status for person in (ada, grace)] == [200, 404]
    theirs = grace.post(nodes.ours, session + "/evaluations", EVALUATION)
    assert theirs.headers["flight-role"] == "owner"
    assert nodes.model.stats()["calls"] == 4


def test_error_pages_stay_the_hosts(nodes: Nodes, ada: Person) -> None:
    said = answer()
    failing = rule(said, status=500)
    failing["match"]["times"] = 1
    nodes.model.script([failing, rule(said)])

    failed, again = ada.grade(nodes.ours, said), ada.grade(nodes.own, said)
    missing = ada.get(nodes.own, "/hr/ai/v1/nothing")
    wrong = ada.post(nodes.own, "/hr/ai/v1/interviews/s-1/evaluations", {})

    assert (failed.status, failed.body) == (502, b"<h1>The grader is out</h1>Please try again.")
    assert again.json() == {"grading": {"score": 70}}  # a failure is not kept for who asks again
    assert (missing.status, missing.body) == (404, b"<h1>HR has no such page</h1>")
    assert (wrong.status, wrong.json()["code"]) == (422, "INPUT_INVALID")


@pytest.mark.parametrize("own", [False, True], ids=["our configuration", "its own"])
def test_a_node_that_stops_hands_on(
    nodes: Nodes, ada: Person, redis_server: RedisServer, namespace: str, tmp_path: Path, own: bool
) -> None:
    said = answer()
    held: dict[str, Any] = rule(said, gate="never")
    held["match"]["nth"] = [1]
    nodes.model.script([held, {**rule(said, score=71), "name": "second"}])
    one, two = (node(tmp_path, redis_server, nodes.model, namespace, own=own) for _ in range(2))
    try:
        one.start(probe=LOGIN)
        two.start(probe=LOGIN)
        mine = ada.grading(one, said)
        nodes.model.until(calls=1)
        theirs = ada.grading(two, said)
        wait_until(lambda: ada.followers(two, said) == 1)

        os.kill(one.pid, signal.SIGTERM)

        assert (theirs.get(timeout=30).status, theirs.get().json()["grading"]["score"]) == (200, 71)
        assert mine.get(timeout=30).status == 502  # the host's page: please try again
        assert one.stop() == 0
        assert nodes.model.stats()["calls"] == 2
    finally:
        one.close()
        two.close()


def test_its_page_shows_the_change_as_it_is() -> None:
    old, new = ((EXAMPLE / name).read_text(encoding="utf-8") for name in ("before.py", "after.py"))
    changed = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1))
    shown = block((EXAMPLE / "README.md").read_text(encoding="utf-8"), "diff", "flights.run")

    assert shown.splitlines() == changed[2:]
    in_view = [line for line in changed if line.startswith("+    ") and "app." not in line]
    assert len([line for line in in_view if "key" in line or "run(" in line]) <= 6


def test_its_page_names_commands_that_are_there() -> None:
    commands = "".join(blocks((EXAMPLE / "README.md").read_text(encoding="utf-8"), "sh"))

    assert "examples.legacy_backend.before:create_app()" in commands
    assert "examples.legacy_backend.after:create_app()" in commands
    assert "-c examples/legacy_backend/gunicorn_conf.py" in commands
