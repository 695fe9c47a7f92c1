"""Draws ``docs/flights-light.png`` and its dark twin: ``python -m tests.board.pictures``.

A real service of two nodes: questions asked again and again, some under way, a stage paused.
"""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import sys
from pathlib import Path

import gevent

from tests.board.browser import Browser, chromium
from tests.board.conftest import sign_in
from tests.board.nodes import ACME, Site, site
from tests.processes import ROOT, wait_until

WIDTH, SCALE = 1180, 1


def busy(nodes: Site) -> None:
    """Twelve questions, each asked ten times, and some that are under way."""
    for number in range(12):
        asking = [nodes.ask(each % 2, f"An index costs space. {number}") for each in range(10)]
        gevent.joinall(asking)
    held = [("gate-one", 0, 7), ("gate-one", 1, 4), ("gate-two", 1, 3), ("gate-three", 0, 2)]
    for gate, node, callers in held:
        for _ in range(callers):
            nodes.ask(node, f"{gate} of today")
        gevent.sleep(1.3)
    path = "/v1/interviews/s/follow-ups"
    asked = {
        "current_question": "Why?", "answer": "gate-two, once more",
        "follow_up_count": 0, "max_follow_up": 2,
    }  # fmt: skip
    gevent.spawn(nodes.nodes[0].post, path, asked, headers=ACME)
    wait_until(lambda: nodes.state()["live"]["total"] == 4)
    nodes.switch("PUT", "demeanor", "scores have drifted since the update")


def main(folder: Path) -> None:
    """Write both pictures."""
    executable = chromium()
    if executable is None:
        sys.exit("wants Debian's chromium: apt-get install chromium")
    with site() as nodes, Browser(executable) as browser:
        busy(nodes)
        for name, dark in (("light", False), ("dark", True)):
            window = browser.open(width=WIDTH, height=560, dark=dark, scale=SCALE)
            sign_in(window, nodes.page())
            window.until("#line", "live")
            window.until("#modules", "paused")
            window.picture(str(folder / f"flights-{name}.png"))
        for gate in ("gate-one", "gate-two", "gate-three"):
            nodes.model.open_gate(gate)


if __name__ == "__main__":
    main(ROOT / "docs")
