"""The dashboards' files are those of the description, and show nothing that does not exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboards import build, paths
from dashboards.boards import boards
from dashboards.describe import ROLES
from dashboards.for_graphite import THEMES
from dashboards.paths import Paths
from flightsvc.flight.state import Role
from flightsvc.metrics import (
    COORDINATION_UP,
    FLIGHT_ANSWERS,
    FLIGHT_CALL_TIME,
    FLIGHT_CALLERS,
    FLIGHT_CALLS,
    FLIGHT_ERRORS,
    FLIGHT_LATENESS,
    FLIGHT_SAVED,
    FLIGHT_SAVED_MONEY,
    FLIGHTS_IN_FLIGHT,
    GUARD_BREAKER,
    GUARD_BULKHEAD,
    GUNICORN_METRICS,
    METRICS,
    PROCESS_HUB_LAG,
    PROCESS_MEMORY,
    REDIS_ERRORS,
    REDIS_TIME,
    Metric,
)

FOLDER = Path(build.__file__).parent
PATH = re.compile(r"stats\.[A-Za-z0-9_.*{}-]+")
STATS = {
    "counter": r"\.(count|rate)",
    "timer": r"\.(mean|median|count|sum|lower|upper|std)(_\d+)?",
    "gauge": r"\.\*",
}
FILES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("gra*/*.json"))


def pattern(metric: Metric, prefix: str = "flightsvc") -> re.Pattern[str]:
    """Fits the paths of a metric, a label given in part or not at all."""
    name = re.sub(r"\\{[a-z_]+\\}", r"[A-Za-z0-9_*-]+", re.escape(metric.name))
    return re.compile(rf"stats\.{metric.kind}s\.{re.escape(prefix)}\.{name}{STATS[metric.kind]}")


def targets(value: Any) -> Iterator[str]:
    """Every target of a file, wherever it stands."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "target":
                yield from [inner] if isinstance(inner, str) else inner
            else:
                yield from targets(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from targets(inner)


def paths_of(name: str) -> set[str]:
    found = [PATH.findall(target) for target in targets(json.loads((FOLDER / name).read_text()))]
    assert all(found), "a target names no metric"
    return {path for some in found for path in some}


def test_the_files_are_what_the_description_makes() -> None:
    made = dict(build.files(boards()))
    assert sorted(made) == FILES, "run: python -m dashboards.build, and remove what is not made"
    stale = [name for name, text in made.items() if (FOLDER / name).read_text() != text]
    assert not stale, "run: python -m dashboards.build"


def test_the_page_explains_every_panel() -> None:
    text = build.PAGE.read_text()
    assert build.page(boards(), text) == text, "run: python -m dashboards.build"
    for board in boards():
        for theme in THEMES:
            assert f"({board.name}-{theme}.png)" in text


@pytest.mark.parametrize("name", FILES)
def test_every_target_names_a_metric_that_exists(name: str) -> None:
    known = [pattern(metric) for metric in (*METRICS, *GUNICORN_METRICS)]
    unknown = {path for path in paths_of(name) if not any(one.fullmatch(path) for one in known)}
    assert not unknown


def test_a_metric_that_does_not_exist_would_be_found() -> None:
    known = [pattern(metric) for metric in METRICS]
    for path in (
        "stats.counters.flightsvc.flight.savings.*.rate",
        "stats.timers.flightsvc.flight.saved.*.upper_95",
        "stats.gauges.flightsvc.process.memory",
    ):
        assert not any(one.fullmatch(path) for one in known)


@pytest.mark.parametrize(
    ("board", "shown"),
    [
        ("savings", [FLIGHT_CALLERS, FLIGHT_CALLS, FLIGHT_SAVED, FLIGHT_SAVED_MONEY]),
        ("savings", [FLIGHT_ANSWERS]),
        ("health", [FLIGHT_LATENESS, FLIGHT_ERRORS, GUARD_BREAKER, REDIS_TIME, REDIS_ERRORS]),
        ("health", [COORDINATION_UP]),
        ("capacity", [FLIGHTS_IN_FLIGHT, GUARD_BULKHEAD, PROCESS_HUB_LAG, PROCESS_MEMORY]),
    ],
)
def test_each_dashboard_shows_what_it_is_for(board: str, shown: list[Metric]) -> None:
    for kind in ("graphite", "grafana"):
        found = paths_of(f"{kind}/flightsvc-{board}.json")
        for metric in shown:
            assert any(pattern(metric).fullmatch(path) for path in found), metric.name


def test_another_prefix_of_several_parts_moves_every_place_in_a_name(tmp_path: Path) -> None:
    build.main(["--prefix", "shop.ai", "--window", "5min", "--to", str(tmp_path)])
    text = (tmp_path / "graphite" / "flightsvc-health.json").read_text()
    assert "stats.counters.shop.ai.flight.errors" in text
    assert "stats.counters.flightsvc" not in text
    words = Paths("shop.ai")
    path = words.counter(FLIGHT_ERRORS, code="THIS").split(".")
    assert path[words.node(FLIGHT_ERRORS, "code")] == "THIS"


def test_workers_of_several_machines_are_told_apart(tmp_path: Path) -> None:
    build.main(["--prefix", "flightsvc.*", "--to", str(tmp_path)])
    text = (tmp_path / "graphite" / "flightsvc-capacity.json").read_text()
    assert "aliasByNode(stats.gauges.flightsvc.*.process.hub_lag.*,3,-1)" in text


def test_a_description_cannot_name_what_is_not_there() -> None:
    with pytest.raises(TypeError, match="no label role"):
        paths.Paths().counter(FLIGHT_SAVED, role="owner")
    with pytest.raises(TypeError, match="is a timer"):
        paths.Paths().counter(FLIGHT_CALL_TIME)


def test_roles_are_those_of_the_flights() -> None:
    assert {role for role, _ in ROLES} == {role.value for role in Role}


def test_panels_are_titled_and_explained_and_their_lines_told_apart() -> None:
    for board in boards():
        titles = [panel.title for panel in board.panels]
        assert len(set(titles)) == len(titles)
        for panel in board.panels:
            assert panel.unit
            assert panel.says.endswith(".")
            names = [line.name for line in panel.lines]
            assert len(set(names)) == len(names), panel.title
            colours = [line.colour for line in panel.lines if line.colour]
            assert len(set(colours)) == len(colours), panel.title


def test_graphite_has_each_board_for_light_and_dark() -> None:
    files = [FOLDER / name for name in FILES if name.startswith("graphite/")]
    names = {json.loads(file.read_text())["name"] for file in files}
    suffixes = ["" if theme == "light" else f"-{theme}" for theme in THEMES]
    assert names == {board.name + suffix for board in boards() for suffix in suffixes}


def test_grafana_asks_for_a_graphite_and_tells_targets_apart() -> None:
    for name in FILES:
        if not name.startswith("grafana/"):
            continue
        model = json.loads((FOLDER / name).read_text())
        assert model["__inputs"][0]["pluginId"] == "graphite"
        assert len({panel["id"] for panel in model["panels"]}) == len(model["panels"])
        for panel in model["panels"]:
            marks = [target["refId"] for target in panel["targets"]]
            assert len(set(marks)) == len(marks)
            assert panel["datasource"]["uid"] == "${DS_GRAPHITE}"
