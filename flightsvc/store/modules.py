"""Modules: what an operator can pause, and what is recorded about it.

A module is a stage (``stage:evaluation``) or a provider (``provider:openai``). Its records are
hash fields ``<decision> <module>`` holding ``<since ms> <JSON>``; the time is Redis's.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, get_args

from flightsvc.errors import NotFound
from flightsvc.settings import Settings
from flightsvc.settings.wording import nearest

log = logging.getLogger(__name__)

#: decisions about a module, first word of their fields
PAUSED, PERSON, ROLLED_BACK = "paused", "person", "rolled_back"


@dataclass(frozen=True, slots=True)
class Pause:
    """A module that takes no calls.

    :param by: who paused it.
    :param at_ms: since when, in ms since 1970 by Redis's clock.
    :param automatic: the checklist said so; nobody did it by hand.
    """

    module: str
    by: str
    reason: str
    at_ms: int
    automatic: bool = False


@dataclass(frozen=True, slots=True)
class Flag:
    """A module that needs a person: so many failures of one code without a success between."""

    module: str
    code: str
    failures: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class RollBack:
    """A stage that asks its former model.

    :param code: the failure that asked for it; empty where a person did.
    """

    module: str
    by: str
    reason: str
    code: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that stands, as a worker knows it.

    :param paused: by module; ``flags`` and ``rolled_back`` likewise.
    :param open_until: provider and model to the end of an open breaker, in this process's
        monotonic seconds.
    :param streaks: module and code to failures without a success between.
    :param forgotten: what no worker may remember, to when it was told so in ms since 1970.
    :param read_at: when it was read, in monotonic seconds; 0: never.
    """

    paused: Mapping[str, Pause] = field(default_factory=dict)
    flags: Mapping[str, Flag] = field(default_factory=dict)
    rolled_back: Mapping[str, RollBack] = field(default_factory=dict)
    open_until: Mapping[str, float] = field(default_factory=dict)
    streaks: Mapping[tuple[str, str], int] = field(default_factory=dict)
    forgotten: Mapping[str, int] = field(default_factory=dict)
    read_at: float = 0.0

    @classmethod
    def read(cls, reply: Any) -> Snapshot:
        """From the reply of ``snapshot.lua``, which has just come."""
        now, (fields, hints, failures, gone) = time.monotonic(), reply
        paused, flags, rolled_back = {}, {}, {}
        for name, value in _pairs(fields):
            decision, _, module = name.decode().partition(" ")
            at_ms, record = read_record(value)
            if decision == PAUSED:
                paused[module] = pause_of(module, at_ms, record)
            elif decision == PERSON:
                flags[module] = Flag(
                    module, str(record.get("code", "")), int(record.get("failures", 0)), at_ms
                )
            elif decision == ROLLED_BACK:
                rolled_back[module] = roll_back_of(module, at_ms, record)
        until = {target.decode(): now + int(left) / 1000 for target, left in _pairs(hints)}
        streaks = {streak_of(name): int(times) for name, times in _pairs(failures)}
        forgotten = {what.decode(): int(since) for what, since in _pairs(gone)}
        return cls(paused, flags, rolled_back, until, streaks, forgotten, now)

    def describe(self, module: str) -> dict[str, Any]:
        """One module for people and programs: JSON values only."""
        pause, flag = self.paused.get(module), self.flags.get(module)
        back = self.rolled_back.get(module)
        return {
            "name": module,
            "paused": pause
            and {
                "by": pause.by,
                "reason": pause.reason,
                "since": moment(pause.at_ms),
                "automatic": pause.automatic,
            },
            "needs_person": flag
            and {"code": flag.code, "failures": flag.failures, "since": moment(flag.at_ms)},
            "rolled_back": back
            and {
                "by": back.by,
                "reason": back.reason,
                "code": back.code,
                "since": moment(back.at_ms),
            },
        }


class Modules:
    """The modules that there are.

    :param stages: names of stages; ``providers`` likewise.
    """

    def __init__(self, stages: Iterable[str], providers: Iterable[str]) -> None:
        self.names = (
            *(f"stage:{name}" for name in sorted(stages)),
            *(f"provider:{name}" for name in sorted(providers)),
        )

    @classmethod
    def of(cls, settings: Settings) -> Modules:
        """Every stage that has settings, and every provider that could be set."""
        providers = get_args(Settings.model_fields["provider"].annotation)
        return cls((name for name in settings.stages if name != "default"), providers)

    def resolve(self, name: str) -> str:
        """The full name of a module.

        :param name: the full name, or the part after the colon where that says enough.
        :raises NotFound: there is no such module, or there are two; says which was meant.
        """
        wanted = name.strip().lower().replace("-", "_")
        found = [one for one in self.names if wanted in (one, one.partition(":")[2])]
        if len(found) == 1:
            return found[0]
        shown = repr(name[:64])
        if found:
            raise NotFound(f"{shown} names two modules: say {' or '.join(found)}.")
        short = {one.partition(":")[2]: one for one in self.names}
        near = nearest(wanted, [*self.names, *short])
        hint = f"did you mean {short.get(near, near)}?" if near else f"known: {self}."
        raise NotFound(f"There is no module {shown}; {hint}")

    def __str__(self) -> str:
        return ", ".join(self.names)


def moment(at_ms: int) -> str:
    """A time as RFC 3339, in UTC."""
    when = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return when.replace("+00:00", "Z")


def read_record(value: bytes) -> tuple[int, dict[str, Any]]:
    """Since when, and the record; an unreadable one is empty, for it stands all the same."""
    at_ms, _, text = value.partition(b" ")
    try:
        record = json.loads(text)
        return int(at_ms), record if isinstance(record, dict) else {}
    except ValueError:
        log.warning("a switch in Redis cannot be read; it holds nevertheless")
        return 0, {}


def streak_of(name: bytes) -> tuple[str, str]:
    """Module and code of a streak's field."""
    module, _, code = name.decode().partition(" ")
    return module, code


def pause_of(module: str, at_ms: int, record: Mapping[str, Any]) -> Pause:
    """The pause that a record holds."""
    return Pause(
        module,
        str(record.get("by", "")),
        str(record.get("reason", "")),
        at_ms,
        record.get("automatic") is True,
    )


def roll_back_of(module: str, at_ms: int, record: Mapping[str, Any]) -> RollBack:
    """The roll-back that a record holds."""
    return RollBack(
        module,
        str(record.get("by", "")),
        str(record.get("reason", "")),
        str(record.get("code", "")),
        at_ms,
    )


def _pairs(flat: list[Any]) -> Iterable[tuple[Any, Any]]:
    return zip(flat[::2], flat[1::2], strict=True)
