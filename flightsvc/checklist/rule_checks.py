"""Rules that are well formed, but cannot work; a part of :mod:`flightsvc.checklist.checks`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from flightsvc.checklist.entries import Entries
from flightsvc.checklist.locate import Path
from flightsvc.checklist.merge import RULES, Origins
from flightsvc.checklist.problems import Problem, name
from flightsvc.checklist.rules import shadow
from flightsvc.checklist.schema import MatchEntry
from flightsvc.settings import Settings
from flightsvc.settings.wording import nearest

#: providers that the service knows; a rule may name a further one of the user's
PROVIDERS: tuple[str, ...] = get_args(Settings.model_fields["provider"].annotation)


def rule_problems(entries: Entries, codes: list[str], origins: Origins) -> Iterator[Problem]:
    """Every rule that cannot work.

    :param codes: the names of all codes, those that are not well formed too.
    """
    for number, match in enumerate(entries.matches):
        if match is not None:
            yield from _rule((RULES, number), match, codes)
    numbers = [number for number, rule in enumerate(entries.rules) if rule is not None]
    rules = [rule for rule in entries.rules if rule is not None]
    for index, number in enumerate(numbers):
        before = [origins.near((RULES, numbers[earlier])) for earlier in shadow(rules, index)]
        # that a rule of the user's takes the place of one of ours is what it is for
        is_ours = origins.near((RULES, number)).ours
        if before and not (is_ours and any(not place.ours for place in before)):
            where = " and ".join(map(str, before))
            yield Problem(
                (RULES, number),
                f"{name((RULES, number))} (to {rules[index].to}) is never reached: {where} takes "
                "all that it fits: move it up, narrow the other, or remove it.",
            )


def _rule(at: Path, match: MatchEntry, codes: list[str]) -> Iterator[Problem]:
    if match.to not in codes:
        near = nearest(match.to, codes)
        hint = f"did you mean {near}?" if near else f"add [codes.{match.to}] or name another."
        path: Path = (*at, "to")
        yield Problem(path, f"{name(path)}: there is no code {match.to!r}: {hint}")
    near = nearest(match.provider or "", PROVIDERS)
    if match.provider and near and near != match.provider:
        path = (*at, "provider")
        yield Problem(path, f"{name(path)}: {match.provider!r}: did you mean {near}?")
    asked = (match.exception, match.code, match.upstream_status, match.upstream_code, match.text)
    if all(each is None for each in asked):
        yield Problem(
            at,
            f"{name(at)} asks for nothing: give one of exception, code, upstream_status, "
            "upstream_code, text.",
        )
    given = match.code if isinstance(match.code, list) else [match.code]
    for code in given:
        if code in codes and code != match.to:
            path = (*at, "code")
            yield Problem(
                path,
                f"{name(path)}: {code} is a code of this list, so an error that names it is that "
                "code already: remove it here.",
            )
