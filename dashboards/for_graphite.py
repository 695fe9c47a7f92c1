"""A board as graphite-web's dashboard keeps it, and its panels as its render API draws them."""

from __future__ import annotations

from typing import Any

from dashboards.describe import COLOURS, Board, Line, Panel

#: size of one graph, in pixels
WIDTH, HEIGHT = 600, 300
REFRESH_MS = 10_000

#: background, text, and the grid's stronger and weaker lines
_PAPER = {
    "light": ("ffffff", "24292f", "d0d7de", "eaeef2"),
    "dark": ("0d1117", "c9d1d9", "30363d", "21262d"),
}
THEMES = tuple(_PAPER)


def state(board: Board, theme: str, minutes: int) -> dict[str, Any]:
    """What graphite-web saves under the board's name; the dark one has ``-dark`` behind it.

    :param theme: of :data:`THEMES`.
    :param minutes: how far back it looks.
    """
    since = {"from": f"-{minutes}minutes", "until": "now"}
    return {
        "name": board.name if theme == "light" else f"{board.name}-{theme}",
        "defaultGraphParams": {**since, "width": str(WIDTH), "height": str(HEIGHT)},
        "graphSize": {"width": WIDTH, "height": HEIGHT},
        "refreshConfig": {"enabled": True, "interval": REFRESH_MS},
        "timeConfig": {
            "type": "relative",
            "relativeStartQuantity": str(minutes),
            "relativeStartUnits": "minutes",
            "relativeUntilQuantity": "",
            "relativeUntilUnits": "now",
            "startDate": "2026-01-01T00:00:00",
            "startTime": "00:00",
            "endDate": "2026-01-01T00:00:00",
            "endTime": "00:00",
        },
        "graphs": [_entry(panel, theme) for panel in board.panels],
    }


def graph(panel: Panel, theme: str) -> dict[str, Any]:
    """Parameters of the render API, but for the time and the size."""
    paper, text, major, minor = _PAPER[theme]
    dark = theme == "dark"
    drawn: dict[str, Any] = {
        "target": [_target(line, dark=dark) for line in panel.lines],
        "title": panel.title,
        "vtitle": panel.unit,
        "bgcolor": paper,
        "fgcolor": text,
        "majorGridLineColor": major,
        "minorGridLineColor": minor,
        "colorList": ",".join(shades[dark] for shades in COLOURS.values()),
        "fontSize": "10",
        "lineWidth": "1.6",
        "hideLegend": "false",
        "lineMode": "staircase" if panel.draw == "steps" else "connected",
        "connectedLimit": "30",  # values that may be missing in a line, not more
    }
    if panel.draw == "stacked":
        drawn |= {"areaMode": "stacked", "areaAlpha": "0.75", "lineMode": "connected"}
    if panel.lowest is not None:
        drawn["yMin"] = f"{panel.lowest:g}"
    if panel.highest is not None:
        drawn["yMax"] = f"{panel.highest:g}"
    return drawn


def _target(line: Line, *, dark: bool) -> str:
    target = f'alias({line.target},"{line.name}")' if line.name else line.target
    return f'color({target},"{COLOURS[line.colour][dark]}")' if line.colour else target


def _entry(panel: Panel, theme: str) -> list[Any]:
    """Its name, its parameters, its address (graphite-web makes that anew), how it is drawn."""
    drawn = graph(panel, theme)
    return [panel.title, drawn, "/render?", "png"]
