"""A list that is well formed, but cannot work: each check names the place and the fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flightsvc.checklist.entries import Entries
from flightsvc.checklist.locate import Path
from flightsvc.checklist.merge import Origins
from flightsvc.checklist.model import UNKNOWN
from flightsvc.checklist.problems import Problem, name
from flightsvc.checklist.rule_checks import rule_problems
from flightsvc.checklist.schema import ACTION_PARAMS, NONE, CodeEntry, RetryEntry
from flightsvc.settings import Settings, StageSettings
from flightsvc.settings.wording import nearest

#: the texts that there are for stages and users
TEMPLATES = ("faq", "guide")
#: parts of a code's name that speak of money: such calls are never made twice
PAYMENT_WORDS = frozenset({"PAY", "PAYMENT", "PAYMENTS", "REFUND"})


def problems_of(
    entries: Entries,
    tree: Mapping[str, Any],
    base: Mapping[str, Any],
    origins: Origins,
    settings: Settings,
) -> Iterator[Problem]:
    """Everything that cannot work.

    :param tree: the merged tables, those that are not well formed too.
    :param base: the shipped tables.
    """
    yield from _references(tree)
    yield from _trips_alert(entries, tree, origins)
    yield from _unused(tree, origins)
    for code, entry in entries.codes.items():
        yield from _code(("codes", code), entry, entries, base.get("codes", {}).get(code, {}))
    for policy, fallback in entries.fallback.items():
        yield from _params(("fallback", policy), fallback.action, set(fallback.params()))
        yield from _template(("fallback", policy, "template"), fallback.template)
    for policy, alert in entries.alert.items():
        yield from _threshold(("alert", policy), alert.count, alert.rate, alert.min_calls)
    for policy in {entry.retry: None for entry in entries.codes.values()}:
        if (retry := entries.retry.get(policy)) is not None:
            yield from _schedule(("retry", policy), retry, settings)
    yield from rule_problems(entries, _keys(tree, "codes"), origins)


def _references(tree: Mapping[str, Any]) -> Iterator[Problem]:
    """Policies that codes name and that do not exist."""
    for code, table in _tables(tree, "codes").items():
        for kind in ("retry", "fallback", "alert"):
            wanted, known = table.get(kind, NONE), _keys(tree, kind)
            is_none = wanted == NONE and (kind != "fallback" or kind not in table)
            if wanted in known or is_none or not isinstance(wanted, str):
                continue
            near = nearest(wanted, known)
            hint = f"did you mean {near}?" if near else f"add [{kind}.{wanted}] or name another."
            at = ("codes", code, kind)
            yield Problem(at, f"{name(at)}: there is no {kind} policy {wanted!r}: {hint}")
    if UNKNOWN not in _keys(tree, "codes"):
        yield Problem(("codes",), f"codes lack {UNKNOWN}, which all other failures are: add it.")


def _trips_alert(
    entries: Entries, tree: Mapping[str, Any], origins: Origins
) -> Iterator[Problem]:
    """A flag is raised once: its alert is told at once, or not at all."""
    at: Path = ("trips_alert",)
    wanted, known = entries.trips_alert, _keys(tree, "alert")
    policy = entries.alert.get(wanted)
    if wanted not in (NONE, *known):
        near = nearest(wanted, known)
        hint = f"did you mean {near}?" if near else f'name another, or write "{NONE}".'
        yield Problem(at, f"trips_alert: there is no alert policy {wanted!r}: {hint}")
    elif policy is not None and policy.count != 1:
        if origins.near(at).ours:  # then it is the policy that was changed
            at = ("alert", wanted, "rate" if policy.count is None else "count")
        yield Problem(
            at,
            f"trips_alert: a flag is raised once, but alert.{wanted} is not told at the first: "
            "give that count = 1, or name another.",
        )


def _unused(tree: Mapping[str, Any], origins: Origins) -> Iterator[Problem]:
    """Policies that no code names. One of ours that a user's file put out of use is no fault."""
    tables = _tables(tree, "codes").values()
    is_changed = any(not place.ours for place in origins.places.values())
    for kind in ("retry", "fallback", "alert"):
        used = {table.get(kind) for table in tables if isinstance(table.get(kind), str)}
        if kind == "alert" and isinstance(tree.get("trips_alert"), str):
            used.add(tree["trips_alert"])
        for policy in _keys(tree, kind):
            at = (kind, policy)
            if policy in used or (is_changed and origins.near(at).ours):
                continue
            yield Problem(at, f"{name(at)} is used by no code: name it in one, or remove it.")


def _code(
    at: Path, entry: CodeEntry, entries: Entries, base: Mapping[str, Any]
) -> Iterator[Problem]:
    yield from _retry(at, entry, entries, base)
    yield from _waits(at, entry, entries)
    yield from _messages(at, entry)
    trips_after = entries.trips_after if entry.trips_after is None else entry.trips_after
    if entry.pauses and trips_after == 0:
        yield Problem(
            (*at, "pauses"),
            f"{name(at)} pauses after 0 failures in a row, which is never: set trips_after, or "
            "pauses to false.",
        )


def _retry(
    at: Path, entry: CodeEntry, entries: Entries, base: Mapping[str, Any]
) -> Iterator[Problem]:
    field: Path = (*at, "retry")
    if base.get("forbids_retry") and not entry.forbids_retry:
        yield Problem(
            (*at, "forbids_retry"),
            f"{name(at)} forbids retries in the shipped list, because a second call would do "
            "harm: remove forbids_retry = false.",
        )
    words = set(str(at[1]).split("_")) & PAYMENT_WORDS
    if words and not entry.forbids_retry and not base:
        yield Problem(
            at, f"{name(at)} is about a payment, which is never retried: add forbids_retry = true."
        )
    if entry.retry == NONE:
        return
    if entry.forbids_retry or base.get("forbids_retry"):
        yield Problem(field, f'{name(field)}: this code forbids retries: set it to "{NONE}".')
    elif not entry.retryable:
        yield Problem(
            field,
            f"{name(field)} is {entry.retry!r}, but the code is not retryable: set it to "
            f'"{NONE}", or retryable to true.',
        )
    policy, fallback = entries.retry.get(entry.retry), entries.fallback.get(entry.fallback)
    leads_on = policy is not None and policy.fallback_route_after_ms is not None
    if leads_on and fallback is not None and fallback.action != "smaller_model":
        yield Problem(
            field,
            f"{name(field)}: {entry.retry!r} leads to the fallback route, but the code's fallback "
            f"{entry.fallback!r} is {fallback.action}: choose a fallback with smaller_model, or a "
            "retry policy without fallback_route_after_ms.",
        )


def _waits(at: Path, entry: CodeEntry, entries: Entries) -> Iterator[Problem]:
    """Two times for the same wait."""
    fallback, state = entries.fallback.get(entry.fallback), entry.state
    if fallback is None or state is None or state.kind != "awaiting_input":
        return
    if fallback.wait_s and state.ttl_s and fallback.wait_s != state.ttl_s:
        path: Path = (*at, "state", "ttl_s")
        yield Problem(
            path,
            f"{name(path)} is {state.ttl_s}, but fallback.{entry.fallback} tells the user to take "
            f"{fallback.wait_s} s: remove one of them.",
        )


def _messages(at: Path, entry: CodeEntry) -> Iterator[Problem]:
    given = [key for key in ("message_zh", "message_en") if getattr(entry, key) is not None]
    if entry.user_sees:
        for key in sorted({"message_zh", "message_en"} - set(given)):
            yield Problem(
                at, f"{name(at)} lacks {key}, but users see it: add it, or user_sees = false."
            )
    else:
        for key in given:
            field: Path = (*at, key)
            yield Problem(
                field,
                f"{name(field)} is never shown, for user_sees is false: remove it, or set "
                "user_sees to true.",
            )


def _params(at: Path, action: str, given: set[str]) -> Iterator[Problem]:
    needed, allowed = ACTION_PARAMS.get(action, (frozenset(), frozenset()))
    for key in sorted(needed - given):
        yield Problem(at, f"{name(at)} lacks {key}, which {action} needs: add it.")
    for key in sorted(given - needed - allowed):
        path: Path = (*at, key)
        yield Problem(path, f"{name(path)} means nothing to the action {action}: remove it.")


def _template(at: Path, template: str | None) -> Iterator[Problem]:
    """A client may know further ones; of those that are ours none is misspelt."""
    near = nearest(template or "", TEMPLATES)
    if template and near and near != template:
        yield Problem(at, f"{name(at)}: there is no template {template!r}: did you mean {near}?")


def _threshold(
    at: Path, count: int | None, rate: float | None, min_calls: int | None
) -> Iterator[Problem]:
    if (count is None) == (rate is None):
        has = "neither count nor rate" if count is None else "both count and rate"
        yield Problem(at, f"{name(at)} has {has}: give one of them.")
    elif rate is None and min_calls is not None:
        path: Path = (*at, "min_calls")
        yield Problem(path, f"{name(path)} goes with a rate only: remove it.")


def _schedule(at: Path, retry: RetryEntry, settings: Settings) -> Iterator[Problem]:
    """Waits and one attempt have to fit into each stage's budget."""
    path: Path = (*at, "delays_ms")
    last: Path = (*at, "fallback_route_after_ms")
    for stage_name, stage in settings.stages.items():
        waits = _retry_waits(retry, stage)
        total = sum(waits) + stage.timeout_ms
        if waits and sum(waits) + (retry.fallback_route_after_ms or 0) >= stage.budget_ms:
            yield Problem(
                last if retry.fallback_route_after_ms else path,
                f"{name(last)}: stage {stage_name} has a budget of {stage.budget_ms} ms, so its "
                "fallback route would never be asked: wait less.",
            )
        if not waits or total <= stage.budget_ms:
            continue
        room = stage.budget_ms - stage.timeout_ms
        yield Problem(
            path,
            f"{name(at)} waits {' + '.join(map(str, waits))} ms, and one attempt of stage "
            f"{stage_name} takes up to {stage.timeout_ms} ms: together {total} ms, more than its "
            f"budget of {stage.budget_ms} ms: wait at most {room} ms in all, or raise "
            f"stages.{stage_name}.budget_ms to {total}.",
        )


def _retry_waits(retry: RetryEntry, stage: StageSettings) -> list[int]:
    """As ``Checklist.delays_ms``."""
    return list(map(max, zip(retry.delays_ms, stage.retry_delays_ms, strict=False)))


def _tables(tree: Mapping[str, Any], section: str) -> dict[str, Mapping[str, Any]]:
    """The entries of a section that are tables."""
    found = tree.get(section, {})
    entries = found.items() if isinstance(found, Mapping) else ()
    return {key: entry for key, entry in entries if isinstance(entry, Mapping)}


def _keys(tree: Mapping[str, Any], section: str) -> list[str]:
    tables = tree.get(section, {})
    return list(tables) if isinstance(tables, Mapping) else []
