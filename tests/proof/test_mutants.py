"""The tests can fail: each of many small faults, put into a copy of the tree, makes one fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import ROOT
from tests.proof.effort import LONG
from tests.proof.mutants import MODEL, MUTANTS, UNFENCED, Mutant

PLUGINS = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:hypothesispytest")
PYTEST = ("-m", "pytest", "-q", "-x", "--tb=line", *PLUGINS)
#: exit statuses of pytest
PASSED, FAILED = 0, 1


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Path]:
    """A copy of what is tested and of the tests."""
    root = tmp_path / "copy"
    for folder in ("flightsvc", "lua", "tests"):
        shutil.copytree(ROOT / folder, root / folder)
    shutil.copy(ROOT / "setup.cfg", root)
    yield root
    shutil.rmtree(root)


def python(root: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Python on a copy, as if nobody had installed anything else."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, *words],
        cwd=root,
        env={**kept, "PYTHONPATH": str(root), "FLIGHTSVC_TEST_STRICT": "", **env},
        capture_output=True,
        text=True,
        check=False,
    )


def run_tests(root: Path, *tests: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run some tests on a copy, on the embedded server."""
    return python(root, *PYTEST, "-k", "not redis-server", *(f"tests/{t}" for t in tests), **env)


def test_a_copy_is_tested_and_nothing_else(copy: Path) -> None:
    show = "import flightsvc.store.scripts as s, tests; print(s.__file__, s.folder())"

    assert python(copy, "-c", show).stdout.split() == [
        str(copy / "flightsvc/store/scripts.py"),
        str(copy / "lua"),
    ]


@pytest.mark.timeout(300)
def test_without_a_mutation_they_pass(copy: Path) -> None:
    tests = sorted({test for mutant in MUTANTS.values() for test in mutant.tests})

    done = run_tests(copy, *tests)

    assert done.returncode == PASSED, done.stdout


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_is_noticed(copy: Path, mutant: Mutant) -> None:
    mutant.apply(copy)

    done = run_tests(copy, *mutant.tests)

    assert done.returncode == FAILED, done.stdout + done.stderr


if LONG:

    @pytest.mark.parametrize("name", [n for n, m in MUTANTS.items() if m.path.startswith("lua/")])
    def test_the_search_finds_every_fault_of_a_script(copy: Path, name: str) -> None:
        MUTANTS[name].apply(copy)

        done = run_tests(copy, MODEL, PROOF_ROUNDS="2000", PROOF_SEED="1", PROOF_SHRINK="0")

        assert done.returncode == FAILED, done.stdout + done.stderr

    def test_random_faults_show_an_end_that_is_not_fenced(copy: Path) -> None:
        UNFENCED.apply(copy)

        done = run_tests(copy, *UNFENCED.tests, PROOF_ROUNDS="5000", PROOF_SEED="1")

        assert done.returncode == FAILED, done.stdout + done.stderr
