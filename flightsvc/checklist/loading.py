"""From the files to the list: read, merged, checked, resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flightsvc.checklist.checks import problems_of
from flightsvc.checklist.classify import Classifier
from flightsvc.checklist.document import CODE, Document, read, shipped
from flightsvc.checklist.entries import Entries, read_entries
from flightsvc.checklist.merge import merge
from flightsvc.checklist.model import (
    AlertPolicy,
    Checklist,
    Code,
    FallbackPolicy,
    RetryPolicy,
    StateChange,
)
from flightsvc.checklist.problems import Problem, told
from flightsvc.checklist.schema import CodeEntry
from flightsvc.errors import FailureType, SettingsError
from flightsvc.settings import Settings
from flightsvc.settings.frozen import FrozenDict


def load_checklist(settings: Settings) -> Checklist:
    """The shipped list with the changes of ``settings.checklist_file``.

    :param settings: also say how much time the retries of each stage have.
    :raises SettingsError: the file cannot be read, or the list cannot work; the message names
        for everything that is wrong its file and line, and the fix.
    """
    own = read(settings.checklist_file) if settings.checklist_file else None
    return build(shipped(), own, settings)


def build(base: Document, own: Document | None, settings: Settings) -> Checklist:
    """The list of two files; see :func:`load_checklist`."""
    tree, origins = merge(base, own)
    problems: list[Problem] = []
    entries = read_entries(tree, problems)
    problems += problems_of(entries, tree, base.tree, origins, settings)
    if problems:
        raise SettingsError(told(problems, origins), code=CODE)
    codes = _codes(entries)
    rules = [rule for rule in entries.rules if rule is not None]
    return Checklist(codes, Classifier(codes, rules), origins)


def _codes(entries: Entries) -> Mapping[str, Code]:
    retries = {
        name: RetryPolicy(name, tuple(each.delays_ms), each.fallback_route_after_ms)
        for name, each in entries.retry.items()
    }
    fallbacks = {
        name: FallbackPolicy(name, each.action, FrozenDict(each.params()))
        for name, each in entries.fallback.items()
    }
    alerts = {
        name: AlertPolicy(
            name,
            channels=tuple(each.channels),
            severity=each.severity,
            window_s=each.window_s,
            count=each.count,
            rate=each.rate,
            min_calls=each.min_calls or 1,
        )
        for name, each in entries.alert.items()
    }
    trips_after = entries.trips_after
    tells = alerts.get(entries.trips_alert)
    codes = {
        name: Code(
            name=name,
            retry=retries.get(each.retry),
            fallback=fallbacks[each.fallback],
            state=_state(each, fallbacks[each.fallback]),
            alert=alerts.get(each.alert),
            failure_type=FailureType(each.failure_type),
            trips_after=trips_after if each.trips_after is None else each.trips_after,
            message_zh=each.message_zh or "",
            message_en=each.message_en or "",
            **_plain(each),
        )
        for name, each in entries.codes.items()
    }
    return {
        name: replace(code, trips_alert=tells) if code.trips_after else code
        for name, code in codes.items()
    }


def _plain(entry: CodeEntry) -> dict[str, Any]:
    """The fields that are the same in the file and in the list."""
    names = (
        "level",
        "cause",
        "retryable",
        "forbids_retry",
        "pauses",
        "status",
        "user_sees",
        "about_zh",
        "about_en",
    )
    return {name: getattr(entry, name) for name in names}


def _state(entry: CodeEntry, fallback: FallbackPolicy) -> StateChange | None:
    """A session that waits for its user waits for as long as the user is told."""
    state = entry.state
    if state is None or state.kind == "none":
        return None
    waits_s = int(fallback.params.get("wait_s", 0)) if state.kind == "awaiting_input" else 0
    return StateChange(state.kind, state.ttl_s or waits_s, state.after)
