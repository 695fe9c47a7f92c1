"""The tables of a list as typed entries; what does not fit is told, the rest goes on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from flightsvc.checklist.locate import Path
from flightsvc.checklist.merge import RULES, SECTIONS
from flightsvc.checklist.problems import Problem, name, of_fault
from flightsvc.checklist.rules import Rule, expanded
from flightsvc.checklist.schema import (
    NONE,
    AlertEntry,
    CodeEntry,
    CodeName,
    Entry,
    FallbackEntry,
    ListEntry,
    MatchEntry,
    Name,
    RetryEntry,
)
from flightsvc.settings.wording import nearest

E = TypeVar("E", bound=Entry)

_POLICY_NAME = TypeAdapter(Name)
_CODE_NAME = TypeAdapter(CodeName)


@dataclass(slots=True)
class Entries:
    """What of a list is well formed; ``rules`` holds None for a rule that is not."""

    retry: dict[str, RetryEntry] = field(default_factory=dict)
    fallback: dict[str, FallbackEntry] = field(default_factory=dict)
    alert: dict[str, AlertEntry] = field(default_factory=dict)
    codes: dict[str, CodeEntry] = field(default_factory=dict)
    matches: list[MatchEntry | None] = field(default_factory=list)
    rules: list[Rule | None] = field(default_factory=list)
    trips_after: int = 0
    trips_alert: str = NONE


def read_entries(tree: Mapping[str, Any], problems: list[Problem]) -> Entries:
    """Read all tables; what is wrong is added to ``problems``."""
    entries = Entries()
    known = [*SECTIONS, RULES, *ListEntry.model_fields]
    for key in tree:
        if key not in known:
            near = nearest(key, known)
            hint = f"did you mean {near}?" if near else f"it knows {', '.join(known)}."
            problems.append(Problem((key,), f"{key} is nothing that a checklist knows: {hint}"))
    top = {key: tree[key] for key in ListEntry.model_fields if key in tree}
    if (found := _entry(ListEntry, top, (), problems)) is not None:
        entries.trips_after, entries.trips_alert = found.trips_after, found.trips_alert
    entries.retry = _section(RetryEntry, "retry", tree, problems)
    entries.fallback = _section(FallbackEntry, "fallback", tree, problems)
    entries.alert = _section(AlertEntry, "alert", tree, problems)
    entries.codes = _section(CodeEntry, "codes", tree, problems)
    _read_rules(entries, tree.get(RULES), problems)
    return entries


def _section(
    model: type[E], section: str, tree: Mapping[str, Any], problems: list[Problem]
) -> dict[str, E]:
    tables = tree.get(section, {})
    if not isinstance(tables, Mapping):
        fix = f"write [{section}.NAME] tables"
        problems.append(Problem((section,), f"{section} is no table: {fix}."))
        return {}
    found: dict[str, E] = {}
    for key, table in tables.items():
        at: Path = (section, key)
        _check_name(at, problems)
        entry = _entry(model, table, at, problems)
        if entry is not None:
            found[key] = entry
    return found


def _check_name(at: Path, problems: list[Problem]) -> None:
    section, key = at
    is_code = section == "codes"
    try:
        (_CODE_NAME if is_code else _POLICY_NAME).validate_python(key)
    except ValidationError:
        kind = "capital letters, digits and single _, as in AI_INFRA_TIMEOUT"
        if not is_code:
            kind = "small letters, digits and _, as in infra_timeout"
        problems.append(Problem(at, f"{key!r} is no name for this: use {kind}."))
    if key == NONE:
        problems.append(Problem(at, f"{name(at)}: this name stands for no policy: choose another."))


def _entry(model: type[E], table: Any, at: Path, problems: list[Problem]) -> E | None:
    if not isinstance(table, Mapping):
        problems.append(Problem(at, f"{name(at)} is no table: write [{name(at)}]."))
        return None
    try:
        return model.model_validate(dict(table))
    except ValidationError as error:
        faults = error.errors(include_url=False)
        lacking = [str(fault["loc"][-1]) for fault in faults if fault["type"] == "missing"]
        if lacking:
            problems.append(Problem(at, f"{name(at)} lacks {', '.join(lacking)}: add what lacks."))
        found: dict[Path, Problem] = {}
        for fault in faults:
            if fault["type"] != "missing":
                problem = of_fault(fault, at, model)
                found.setdefault(problem.path, problem)  # of several types each one fails
        problems += found.values()
        return None


def _read_rules(entries: Entries, tables: Any, problems: list[Problem]) -> None:
    if not isinstance(tables, list):
        problems.append(Problem((RULES,), f"{RULES} is no array of tables: write [[{RULES}]]."))
        return
    for number, table in enumerate(tables):
        at: Path = (RULES, number)
        match = _entry(MatchEntry, table, at, problems)
        entries.matches.append(match)
        entries.rules.append(None if match is None else _rule(match, at, problems))


def _rule(match: MatchEntry, at: Path, problems: list[Problem]) -> Rule | None:
    spans: dict[str, frozenset[str]] = {}
    for key in ("upstream_status", "upstream_code"):
        try:
            spans[key] = expanded(_listed(getattr(match, key)))
        except ValueError as error:
            problems.append(Problem((*at, key), f"{name((*at, key))}: {error}."))
            return None
    try:
        text = None if match.text is None else re.compile(match.text)
    except re.error as error:
        said = f"{name((*at, 'text'))} is no regular expression ({error}): correct it."
        problems.append(Problem((*at, "text"), said))
        return None
    return Rule(
        to=match.to,
        provider=match.provider or "",
        exceptions=frozenset(map(str, _listed(match.exception))),
        codes=frozenset(map(str, _listed(match.code))),
        statuses=spans["upstream_status"],
        upstream_codes=spans["upstream_code"],
        text=text,
    )


def _listed(value: Any) -> list[str | int]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]
