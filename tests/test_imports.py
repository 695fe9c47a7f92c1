"""The import rules of .importlinter hold, and they bite."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT

LINT = Path(sys.executable).with_name("lint-imports")


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    command = [str(LINT), "--no-cache"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True)


def test_imports_run_downward_only() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("flight/key.py", "import redis"),
        ("flight/key.py", "import flask"),
        ("flight/key.py", "from flightsvc import guard"),
        ("flight/key.py", "import flightsvc.providers"),
        ("guard/budget.py", "from flightsvc.store import scripts"),
        ("guard/budget.py", "from flightsvc.flight import key"),
        ("providers/base.py", "import flightsvc.guard"),
        ("store/names.py", "import flightsvc.flight"),
        ("interview/results.py", "import flightsvc.web"),
        ("errors.py", "import flightsvc.settings"),
        ("web/health.py", "import redis"),
        ("web/health.py", "import sqlalchemy"),
        ("records/rows.py", "import flightsvc.flight"),
        ("records/rows.py", "from flightsvc.store import names"),
        ("records/report.py", "import flask"),
        ("embedded/folder.py", "import redis"),
        ("files/local.py", "import flightsvc.store"),
        ("files/local.py", "import werkzeug"),
        ("files/reading.py", "import pypdf"),
    ],
)
def test_what_runs_upward_is_found(tmp_path: Path, module: str, line: str) -> None:
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "flightsvc", tmp_path / "flightsvc", ignore=ignore)
    shutil.copy(ROOT / ".importlinter", tmp_path)
    assert (tmp_path / "flightsvc" / module).is_file()
    with (tmp_path / "flightsvc" / module).open("a") as text:
        text.write(f"\n{line}\n")
    done = lint(tmp_path)
    assert done.returncode == 1
    assert "BROKEN" in done.stdout
