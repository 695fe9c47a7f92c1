"""A board as Grafana imports it; its data source is a Graphite, chosen when it is imported."""

from __future__ import annotations

from typing import Any

from dashboards.describe import COLOURS, Board, Line, Panel

SOURCE = {"type": "graphite", "uid": "${DS_GRAPHITE}"}
#: of Grafana's grid, which is 24 wide
WIDTH, HEIGHT = 8, 8
_UNITS = {"ms": "ms", "%": "percent", "s": "s", "MB": "decmbytes"}


def dashboard(board: Board, minutes: int) -> dict[str, Any]:
    """The JSON model of a dashboard.

    :param minutes: how far back it looks.
    """
    return {
        "__inputs": [
            {
                "name": "DS_GRAPHITE",
                "label": "Graphite",
                "description": "what carbon keeps",
                "type": "datasource",
                "pluginId": "graphite",
                "pluginName": "Graphite",
            }
        ],
        "__requires": [
            {"type": "datasource", "id": "graphite", "name": "Graphite", "version": "1.0.0"},
            {"type": "panel", "id": "timeseries", "name": "Time series", "version": ""},
        ],
        "uid": board.name,
        "title": board.title,
        "tags": ["flightsvc"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": f"now-{minutes}m", "to": "now"},
        "timezone": "",
        "annotations": {"list": []},
        "templating": {"list": []},
        "panels": [_panel(panel, at) for at, panel in enumerate(board.panels)],
    }


def _panel(panel: Panel, at: int) -> dict[str, Any]:
    across = 24 // WIDTH
    defaults: dict[str, Any] = {
        "unit": _UNITS.get(panel.unit, "short"),
        "color": {"mode": "palette-classic"},
        "custom": _custom(panel),
    }
    if panel.lowest is not None:
        defaults["min"] = panel.lowest
    if panel.highest is not None:
        defaults["max"] = panel.highest
    return {
        "id": at + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.says,
        "datasource": SOURCE,
        "gridPos": {
            "x": at % across * WIDTH,
            "y": at // across * HEIGHT,
            "w": WIDTH,
            "h": HEIGHT,
        },
        "targets": [_target(line, number) for number, line in enumerate(panel.lines)],
        "fieldConfig": {
            "defaults": defaults,
            "overrides": [_colour(line) for line in panel.lines if line.colour],
        },
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }


def _custom(panel: Panel) -> dict[str, Any]:
    stacked = panel.draw == "stacked"
    return {
        "drawStyle": "line",
        "lineInterpolation": "stepAfter" if panel.draw == "steps" else "linear",
        "lineWidth": 1,
        "fillOpacity": 60 if stacked else 0,
        "showPoints": "never",
        "spanNulls": True,
        "axisLabel": panel.unit,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
    }


def _target(line: Line, number: int) -> dict[str, Any]:
    named = f"alias({line.target},'{line.name}')" if line.name else line.target
    return {"refId": chr(ord("A") + number), "target": named, "datasource": SOURCE}


def _colour(line: Line) -> dict[str, Any]:
    """Between the two shades: the reader's theme is Grafana's own matter."""
    return {
        "matcher": {"id": "byName", "options": line.name},
        "properties": [
            {
                "id": "color",
                "value": {"mode": "fixed", "fixedColor": f"#{COLOURS[line.colour][1]}"},
            }
        ],
    }
