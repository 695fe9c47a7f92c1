"""Makes the dashboards' files from their one description: ``python -m dashboards.build``.

Another StatsD prefix, or a Graphite that keeps a value every minute, gets files of its own::

    python -m dashboards.build --prefix 'shop.*' --window 10min --minutes 1440 --to /tmp/boards
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dashboards import for_grafana, for_graphite
from dashboards.boards import boards
from dashboards.describe import Board

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "docs" / "dashboards.md"
#: markers on that page
BEGIN, END = "<!-- panels: made by python -m dashboards.build -->", "<!-- end of panels -->"
_COLUMNS = "| panel | unit | how to read it |\n|---|---|---|"
#: how far back a dashboard looks, in min
MINUTES = 60


def files(made: Iterable[Board], minutes: int = MINUTES) -> Iterator[tuple[str, str]]:
    """Name below the folder and content of each file."""
    for board in made:
        for theme in for_graphite.THEMES:
            state = for_graphite.state(board, theme, minutes)
            yield f"graphite/{state['name']}.json", _text(state)
        yield f"grafana/{board.name}.json", _text(for_grafana.dashboard(board, minutes))


def page(made: Iterable[Board], text: str) -> str:
    """docs/dashboards.md, with what each panel says between its markers."""
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    tables = []
    for board in made:
        rows = [f"| {panel.title} | {panel.unit} | {panel.says} |" for panel in board.panels]
        tables.append("\n".join([f"### {board.title}", "", _COLUMNS, *rows]))
    return "\n".join([head + BEGIN, "", "\n\n".join(tables), "", END + tail])


def main(arguments: Sequence[str] | None = None) -> None:
    """Write all files."""
    parser = argparse.ArgumentParser(prog="python -m dashboards.build", description=__doc__)
    parser.add_argument("--prefix", default="flightsvc", help="of the names sent to StatsD")
    parser.add_argument("--window", default="1min", help="over which rates are smoothed")
    parser.add_argument("--minutes", type=int, default=MINUTES, help="how far back they look")
    parser.add_argument("--to", type=Path, default=FOLDER, help="folder")
    given = parser.parse_args(arguments)
    for name, text in files(boards(given.prefix, given.window), given.minutes):
        path = given.to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if given.to == FOLDER:
        PAGE.write_text(page(boards(), PAGE.read_text()))


def _text(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main()
