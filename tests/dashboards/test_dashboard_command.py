"""``make dashboard``, as a person uses it: addresses that work, and an end without remains."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from dashboards.programs import Programs
from tests.processes import ROOT, alive, wait_until

pytestmark = pytest.mark.timeout(420)

LAST = "Ctrl-C ends everything."


def descendants(pid: int) -> set[int]:
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found |= {child, *descendants(child)}
    return found


def test_it_shows_the_dashboards_and_ctrl_c_ends_everything(
    programs: Programs, tmp_path: Path
) -> None:
    output, folder = tmp_path / "output", tmp_path / "tmp"
    folder.mkdir()
    with output.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "dashboards", "--port", "0"],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(lambda: LAST in output.read_text() or process.poll() is not None, 120)
        said = output.read_text()
        assert LAST in said, said
        boards = re.findall(r"http://127\.0\.0\.1:\d+/dashboard/(\S+)", said)
        assert len(boards) == 6
        url = re.search(r"Graphite +(http://127\.0\.0\.1:\d+)", said)
        assert url is not None
        for name in boards:
            with urllib.request.urlopen(f"{url[1]}/dashboard/load/{name}", timeout=30) as answer:
                assert json.load(answer)["state"]["name"] == name
        children = descendants(process.pid)
        assert len(children) >= 8  # StatsD, carbon, graphite-web, model, gunicorn, Valkey
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        wait_until(lambda: not any(alive(child) for child in children), 20)
        assert not list(folder.iterdir())
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(60)
