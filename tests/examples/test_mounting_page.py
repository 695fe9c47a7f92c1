"""What docs/mounting.md and docs/migration.md print runs as it stands there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flask import Flask, current_app, request, session

from flightsvc import FlightKey, FlightSvc
from flightsvc.errors import CallFailed
from flightsvc.flight import hash_text
from tests.processes import ROOT, wait_until
from tests.readme_pages import block, page
from tests.service.gunicorn_master import Master


def test_hooks_of_ones_own_beside_ours(tmp_path: Path) -> None:
    config = tmp_path / "gunicorn.conf.py"
    config.write_text(block(page("docs/mounting.md"), "python", "import *"), encoding="utf-8")
    env = {"FLIGHTSVC_MODE": "local", "PYTHONPATH": str(ROOT)}

    with Master(env, config=str(config), app="wsgi:app") as master:
        wait_until(lambda: master.log().count("our own hook") == 2)
        master.reload()
        wait_until(lambda: master.log().count("our own hook") == 4)
        assert "Settings and checklist read again" in master.log()
        assert master.get("/readyz").json()["redis"] == "off"


def test_the_configuration_of_ones_own_is_that_of_the_example() -> None:
    printed = block(page("docs/mounting.md"), "python", "worker_exit")
    example = (ROOT / "examples/legacy_backend/gunicorn_conf.py").read_text(encoding="utf-8")

    code = [line.partition("  #")[0] for line in printed.splitlines()[1:] if line]
    assert [line for line in code if line not in example] == []


class Document:
    """What a host's ORM gives."""

    text = "A long text."

    class query:  # noqa: N801
        @staticmethod
        def get_or_404(number: int) -> Document:
            return Document()


def test_the_view_of_the_migration_page_runs() -> None:
    app, said, closed = Flask("host"), page("docs/migration.md"), []
    app.secret_key = "x"
    app.config["FLIGHTSVC_MODE"] = "local"
    calls: list[tuple[str, str]] = []

    def summarise(text: str, language: str) -> dict[str, str]:
        calls.append((text, language))
        return {"summary": text[:6]}

    db = SimpleNamespace(session=SimpleNamespace(close=lambda: closed.append(True)))
    names: dict[str, Any] = {
        "app": app,
        "db": db,
        "flightsvc": FlightSvc(),
        "hash_text": hash_text,
        "request": request,
        "session": session,
        "summarise": summarise,
        "Document": Document,
        "FlightKey": FlightKey,
        "PROMPT": "Sum up",
    }
    exec(block(said, "python", "FLIGHTSVC_STAGES"), names)
    names["flightsvc"].init_app(app)
    exec(block(said, "python", "# a view"), names)
    client = app.test_client()
    with client.session_transaction() as signed_in:
        signed_in["user"] = "ada"

    replies = [client.post("/documents/7/summary", data={"language": "en"}) for _ in range(2)]
    names["flightsvc"].close()

    assert [reply.json for reply in replies] == [{"summary": "A long"}] * 2
    assert (calls, closed) == ([("A long text.", "en")], [True, True])


def test_what_the_migration_page_says_of_the_request_is_so() -> None:
    app = Flask("host")
    app.config.update(FLIGHTSVC_MODE="local", MODEL_URL="http://model")
    service = FlightSvc(app)
    def ask(url: str, text: str) -> str:
        return f"{url} {text}"

    names: dict[str, Any] = {"current_app": current_app, "ask": ask, "text": "x"}

    with app.test_request_context("/?word=w"):
        with pytest.raises(CallFailed) as failed:
            service.flights.run(FlightKey("x", 1), lambda _ctx: request.args["word"])
        exec(block(page("docs/migration.md"), "python", "app.app_context()"), names)
        taken_along = service.flights.run(FlightKey("x", 2), names["call"])
    service.close()

    assert failed.value.code == "UNEXPECTED"
    assert "outside of request context" in str(failed.value.__cause__)
    assert taken_along.value == "http://model x"
