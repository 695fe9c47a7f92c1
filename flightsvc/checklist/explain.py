"""One code, resolved: every value, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from flightsvc.checklist.locate import Path
from flightsvc.checklist.merge import RULES
from flightsvc.checklist.model import Checklist, Code, StateChange
from flightsvc.checklist.render import rule_cells

#: a value that no file gives
DEFAULT = "default"
#: fields that are policies, and the kind of each
POLICIES = {"retry": "retry", "fallback": "fallback", "alert": "alert", "trips_alert": "alert"}


def explain(checklist: Checklist, name: str) -> str:
    """What the list says about a code, one value a line, with file, line and whose it is.

    :raises KeyError: there is no such code.
    """
    code = checklist.code(name)
    rows = [*_values(checklist, code), *_rules(checklist, code)]
    wide = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [
        f"  {what:<{wide[0]}}  {value:<{wide[1]}}  {where}".rstrip() for what, value, where in rows
    ]
    return "\n".join([f"{code.name}: {code.about_en} ({code.about_zh})", *lines]) + "\n"


Row = tuple[str, str, str]


def _values(checklist: Checklist, code: Code) -> Iterator[Row]:
    at: Path = ("codes", code.name)
    for each in fields(code):
        value = getattr(code, each.name)
        if each.name in ("name", "about_zh", "about_en"):
            continue
        path = (*at, each.name)
        if each.name == "trips_after" and checklist.origins.of(path) is None:
            path = ("trips_after",)
        if each.name == "trips_alert":
            path = ("trips_alert",)
        if each.name in POLICIES:
            yield each.name, "none" if value is None else value.name, _where(checklist, path)
            if value is not None:
                yield from _policy(checklist, POLICIES[each.name], value)
        elif isinstance(value, StateChange):
            yield each.name, value.kind, _where(checklist, path)
            for part in ("ttl_s", "after"):
                where = _where(checklist, (*path, part))
                if part == "ttl_s" and value.ttl_s and where == DEFAULT:  # as the user is told
                    where = _where(checklist, ("fallback", code.fallback.name, "wait_s"))
                yield f"  {part}", str(getattr(value, part)), where
        else:
            yield each.name, _shown(value), _where(checklist, path)


def _policy(checklist: Checklist, kind: str, policy: Any) -> Iterator[Row]:
    at: Path = (kind, policy.name)
    for each in fields(policy):
        value = getattr(policy, each.name)
        if each.name == "params":
            for key, param in value.items():
                yield f"  {key}", _shown(param), _where(checklist, (*at, key))
        elif each.name == "min_calls" and policy.rate is None:
            continue
        elif each.name != "name" and value is not None:
            yield f"  {each.name}", _shown(value), _where(checklist, (*at, each.name))


def _rules(checklist: Checklist, code: Code) -> Iterator[Row]:
    yield "comes from", "an error that names it", ""
    for number, rule in enumerate(checklist.classifier.rules):
        if rule.to == code.name:
            seen, provider, _ = rule_cells(rule)
            asked = seen if provider == "any" else f"{provider}: {seen}"
            yield "", asked, _where(checklist, (RULES, number))


def _where(checklist: Checklist, path: Path) -> str:
    place = checklist.origins.of(path)
    if place is None:
        return DEFAULT
    return f"{place} ({'shipped' if place.ours else 'yours'})"


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(getattr(value, "value", value))
