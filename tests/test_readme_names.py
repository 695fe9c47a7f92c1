"""The names that README.md and docs/ use exist, and their links lead on."""

from __future__ import annotations

import inspect
import re
from http import HTTPStatus
from pathlib import Path

import pytest

from flightsvc import errors
from flightsvc.app import close_worker, create_app
from flightsvc.checklist import load_checklist
from flightsvc.cli import make_parser
from flightsvc.demo.load import Asked
from flightsvc.demo.report import table
from flightsvc.demo.samples import IDENTICAL
from flightsvc.demo.tally import Round
from flightsvc.metrics.names import METRICS
from flightsvc.settings import STAGE_DEFAULTS, Settings, StageSettings
from tests.processes import ROOT
from tests.readme_pages import PAGES, blocks, page, rows
from tests.web.declared import Declared


def test_the_commands_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", page("Makefile"), re.MULTILINE))
    for text in map(page, ("README.md", "CHANGELOG.md")):
        lines = [*re.findall(r"`([^`\n]+)`", text), *"".join(blocks(text, "sh")).splitlines()]
        for line in lines:
            words = line.split()
            if words[0] == "make":
                assert words[1] in targets, line
            if words[0].endswith("flightsvc") and len(words) > 1:
                make_parser().parse_args(words[1:])  # an unknown one ends the process


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_variables_exist(path: Path) -> None:
    known = {f"FLIGHTSVC_{name.upper()}" for name in Settings.model_fields}
    known |= {"FLIGHTSVC_CONFIG", "FLIGHTSVC_TEST_STRICT", "FLIGHTSVC_STAGES__", "FLIGHTSVC_"}
    known |= {
        f"FLIGHTSVC_STAGES__{stage.upper()}__{name.upper()}"
        for stage in STAGE_DEFAULTS
        for name in StageSettings.model_fields
    }
    assert set(re.findall(r"\bFLIGHTSVC_\w*", path.read_text(encoding="utf-8"))) <= known


def test_the_routes_exist() -> None:
    app = create_app(Settings(mode="local"))
    served = {rule.rule for rule in app.url_map.iter_rules()}
    said = re.findall(r"^\| `(?:GET|POST|DELETE) ([^`]+)` \|", page("README.md"), re.MULTILINE)

    assert {re.sub(r"<\w+>", "{}", rule) for rule in served} == {
        re.sub(r"\{\w+\}", "{}", rule) for rule in said
    }


def test_the_errors_are_those_of_the_tree() -> None:
    tree = {
        (kind.default_code, kind.status)
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.FlightSvcError)
    }
    listed = {(code.name, code.status) for code in load_checklist(Settings()).codes.values()}
    # what HTTP itself has names for, and what the reading of bodies finds (400)
    listed |= {
        (HTTPStatus(status).phrase.upper().replace(" ", "_"), status) for status in (405, 415)
    }
    body = (ROOT / "flightsvc" / "web" / "body.py").read_text(encoding="utf-8")
    listed |= {(code, 400) for code in re.findall(r'code="(\w+)"', body)}
    said = codes_said()

    assert len(said) > 15
    assert {(code, status) for status, code in said} <= tree | listed | {
        # of chats, by the statuses that OpenAI's clients know
        ("INPUT_INVALID", 400),
        ("MODEL_NOT_FOUND", 404),
        ("PROVIDER_RATE_LIMITED", 429),
        # of a call's answer, and where nothing can be served (the class says 500)
        ("RESULT_TOO_LARGE", 500),
        ("SETTINGS_INVALID", 503),
        ("FORBIDDEN", 403),
    }


def test_the_errors_are_all_that_a_client_can_see() -> None:
    app = create_app(
        Settings(mode="local", api_tokens={"a": "tenant"}, operator_tokens={"b": "operator"})
    )
    declared = Declared(app.test_client().get("/openapi.json").get_json())
    close_worker(app)

    # an address without the method is no operation of the document
    seen = declared.problems | {(405, "METHOD_NOT_ALLOWED")}
    assert seen == codes_said()


def codes_said() -> set[tuple[int, str]]:
    """(status, code) of the table in docs/running.md."""
    return {
        (int(row[0]), row[1].strip("`"))
        for row in rows(page("docs/running.md"))
        if re.fullmatch(r"[1-5]\d\d", row[0])
    }


def test_the_metrics_exist() -> None:
    said = {row[0].strip("`") for row in rows(page("docs/running.md")) if "." in row[0]}

    assert len(said) > 5
    assert said <= {metric.name for metric in METRICS}


def test_the_demo_s_table_is_the_one_that_is_printed() -> None:
    asked = [Asked("x", IDENTICAL, None, "", 1.0)]
    heading = table([Round("at once", asked, {})], {}).splitlines()[0].replace(" error", "")

    assert heading.replace(" ", "") in page("README.md").replace(" ", "")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_to_files(path: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8"))
    inside = [link for link in links if not re.match(r"https?://", link)]

    assert [link for link in inside if not (path.parent / link).exists()] == []


def test_every_page_is_linked() -> None:
    linked = set(re.findall(r"\]\(docs/([^)]+)\)", page("README.md")))

    assert linked >= {path.name for path in (ROOT / "docs").glob("*.md")}
