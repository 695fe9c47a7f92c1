"""The shipped list with a user's changes: the tables of both, and where each value came from.

Policies and codes are merged field by field. Rules of the user's come before the shipped ones,
for the first that fits decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flightsvc.checklist.document import Document
from flightsvc.checklist.locate import Path

#: tables of named entries, merged field by field
SECTIONS = ("retry", "fallback", "alert", "codes")
RULES = "match"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands.

    :param ours: whether that is the shipped list.
    """

    file: str
    line: int
    ours: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(slots=True)
class Origins:
    """The place of every value of the merged list."""

    places: dict[Path, Place] = field(default_factory=dict)

    def of(self, path: Path) -> Place | None:
        """The place of exactly this value; None if no file gives it."""
        return self.places.get(path)

    def near(self, path: Path) -> Place:
        """The place of a value, or of the nearest table around it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        raise KeyError(path)

    def take(self, source: Document, old: Path, new: Path, *, ours: bool) -> None:
        """Note a value and everything in it as this file's; what stood there is forgotten."""
        for path in [path for path in self.places if path[: len(new)] == new]:
            del self.places[path]
        for path, line in source.lines.items():
            if path[: len(old)] == old:
                self.places[new + path[len(old) :]] = Place(source.file, line, ours)


def merge(base: Document, own: Document | None) -> tuple[dict[str, Any], Origins]:
    """The tables of both, and the origin of each value."""
    origins = Origins({path: Place(base.file, line, True) for path, line in base.lines.items()})
    tree: dict[str, Any] = {name: _copy(value) for name, value in base.tree.items()}
    if own is None:
        return tree, origins
    for name, value in own.tree.items():
        if name in SECTIONS and isinstance(value, Mapping):
            _merge_section(tree.setdefault(name, {}), own, name, origins)
        elif name == RULES and isinstance(value, list):
            _prepend_rules(tree, own, origins)
        else:
            tree[name] = value
            origins.take(own, (name,), (name,), ours=False)
    return tree, origins


def _merge_section(section: dict[str, Any], own: Document, name: str, origins: Origins) -> None:
    for entry, fields in own.tree[name].items():
        at: Path = (name, entry)
        known = section.get(entry)
        if not isinstance(fields, Mapping) or not isinstance(known, dict):
            section[entry] = _copy(fields)
            origins.take(own, at, at, ours=False)
            continue
        for gone in _replaced(name, known, fields):
            del known[gone]
            origins.places.pop((*at, gone), None)
        for key, value in fields.items():
            known[key] = value
            origins.take(own, (*at, key), (*at, key), ours=False)


def _replaced(section: str, known: Mapping[str, Any], fields: Mapping[str, Any]) -> list[str]:
    """Fields of an entry that make no sense any more beside the user's."""
    if section == "fallback" and fields.get("action", known.get("action")) != known.get("action"):
        return [key for key in known if key != "action"]  # they belong to the other action
    if section == "codes" and fields.get("user_sees") is False:
        return [key for key in ("message_zh", "message_en") if key in known and key not in fields]
    if section == "alert" and "count" in fields and "rate" not in fields:
        return [key for key in ("rate", "min_calls") if key in known]
    if section == "alert" and "rate" in fields and "count" not in fields:
        return [key for key in ("count",) if key in known]
    return []


def _prepend_rules(tree: dict[str, Any], own: Document, origins: Origins) -> None:
    rules = own.tree[RULES]
    moved = {path: place for path, place in origins.places.items() if path[0] == RULES}
    for path in moved:
        del origins.places[path]
    for path, place in moved.items():
        if len(path) > 1:
            assert isinstance(path[1], int)
            path = (RULES, path[1] + len(rules), *path[2:])
        origins.places[path] = place
    for number in range(len(rules)):
        origins.take(own, (RULES, number), (RULES, number), ours=False)
    tree[RULES] = [*rules, *tree[RULES]]


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(inner) for key, inner in value.items()}
    return list(value) if isinstance(value, list) else value
