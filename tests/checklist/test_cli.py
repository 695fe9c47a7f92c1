"""``flightsvc checklist …`` as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flightsvc.checklist.render import markdown
from tests.checklist.lists import merged

COMMAND = str(Path(sys.executable).with_name("flightsvc"))


def run(*words: str | Path, given: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if "FLIGHTSVC_" not in key}
    return subprocess.run(
        [COMMAND, "checklist", *map(str, words)],
        env={**clean, **env},
        input=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / "own.toml"
    file.write_text("[codes.OVERLOAD]\nmessage_en = 'Mine.'\n", encoding="utf-8")
    return file


def test_check_says_that_nothing_is_wrong(own: Path) -> None:
    done = run("check")
    assert (done.returncode, done.stderr) == (0, "")
    codes = len(merged().codes)
    assert done.stdout.startswith(f"the shipped checklist: nothing is wrong: {codes} codes")
    done = run("check", own)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{own}: nothing is wrong: {codes} codes, 1 of its values yours.\n"


def test_check_names_what_is_wrong(own: Path) -> None:
    own.write_text("[codes.OVERLOAD]\nstatus = 1\nretri = 2\n", encoding="utf-8")
    for done in (run("check", own), run("table", FLIGHTSVC_CHECKLIST_FILE=str(own))):
        assert (done.returncode, done.stdout) == (1, "")
        assert f"{own}:2: codes.OVERLOAD.status is 1" in done.stderr
        assert f"{own}:3: codes.OVERLOAD.retri" in done.stderr
        assert "Traceback" not in done.stderr


def test_check_knows_the_stages_of_the_settings(own: Path) -> None:
    own.write_text("[retry.backoff]\ndelays_ms = [12_000]\n", encoding="utf-8")
    done = run("check", own)
    assert "stages.evaluation.budget_ms" in done.stderr
    env = {
        f"FLIGHTSVC_STAGES__{stage}__BUDGET_MS": "200000"
        for stage in ("DEFAULT", "EVALUATION", "FOLLOW_UP", "CHAT")
    }
    assert run("check", own, **env).returncode == 0


def test_explain_shows_a_code(own: Path) -> None:
    done = run("explain", "OVERLOAD", "--file", own)
    assert done.returncode == 0
    assert f"{own}:2 (yours)" in done.stdout
    done = run("explain", "OVERLOD")
    assert done.returncode == 1
    assert done.stderr == (
        "flightsvc: OVERLOD is no code of the checklist; did you mean OVERLOAD?\n"
    )


def test_table_prints_the_list(own: Path) -> None:
    assert run("table").stdout == markdown(merged())
    assert "Mine." in run("table", "--html", "--file", own).stdout
    in_ascii = run("table", PYTHONIOENCODING="ascii")
    assert in_ascii.stdout == markdown(merged())


def test_simulate_replays_a_file_or_what_comes_in(tmp_path: Path) -> None:
    trace = '{"at_ms": 0, "latency_ms": 10, "code": "PROVIDER_UNAVAILABLE"}\n'
    file = tmp_path / "t.jsonl"
    file.write_text(trace, encoding="utf-8")
    done = run("simulate", file)
    assert done.returncode == 0
    assert "PROVIDER_UNAVAILABLE" in done.stdout
    found = json.loads(run("simulate", "-", "--json", given=trace).stdout)
    assert found["codes"]["total"]["calls"] == 3
    assert found["codes"]["total"]["smaller"] == 1
    none = json.loads(run("simulate", file, "--json", "--smaller-ms", "none").stdout)
    assert none["codes"]["total"]["smaller"] == 0
    assert run("simulate", tmp_path / "none.jsonl").stderr.endswith(
        "none.jsonl cannot be read: No such file or directory.\n"
    )
    assert run("simulate", file, "--smaller-ms", "-1").returncode == 2
