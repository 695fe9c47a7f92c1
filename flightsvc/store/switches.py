"""Switches: what holds for all workers until somebody takes it back.

A module can be paused, can need a person, and a stage can be rolled back to its former model.
All of it stands in one hash without a TTL: a pause that ends by itself would surprise whoever
made it. Nothing here is asked by a request: see ``watch.py``.
"""

from __future__ import annotations

import json
import logging

from flightsvc.errors import InvalidInput, NotFound
from flightsvc.store import verbs
from flightsvc.store.modules import (
    PAUSED,
    PERSON,
    ROLLED_BACK,
    Modules,
    Pause,
    RollBack,
    Snapshot,
    pause_of,
    read_record,
    roll_back_of,
)
from flightsvc.store.names import SharedNames
from flightsvc.store.nowhere import OK, Scripts

log = logging.getLogger(__name__)

#: longest reason and name of who did it, in characters
LONGEST_REASON, LONGEST_NAME = 500, 100
#: who did what nobody did by hand
CHECKLIST = "checklist"


class Switches:
    """Every method but :meth:`snapshot` changes something for all workers of the namespace.

    :param modules: those that there are; others are refused.

    A module is given as :meth:`Modules.resolve` takes it. All methods raise:

    :raises NotFound: there is no such module.
    :raises InvalidInput: a reason or name is empty, too long, or cannot be printed.
    :raises StoreError: Redis could not be asked; if ``maybe_done``, it may have been changed.
    """

    def __init__(self, store: Scripts, names: SharedNames, modules: Modules) -> None:
        self._store = store
        self._names = names
        self.modules = modules

    def snapshot(self) -> Snapshot:
        """Everything that stands, in one round trip."""
        names = self._names
        keys = [names.switches, names.hints, names.streaks, names.forgotten]
        return Snapshot.read(self._store.run(verbs.SNAPSHOT, keys, []))

    def pause(self, module: str, *, by: str, reason: str) -> Pause:
        """Let a module take no more calls; a second pause replaces the first.

        :param by: who does it.
        :param reason: why, for whoever wonders later.
        """
        module = self.modules.resolve(module)
        record = {"by": _printable("by", by, LONGEST_NAME), "reason": _reason(reason)}
        at_ms, stands = read_record(self._on(PAUSED, module, record, keep=False)[1])
        log.warning("%s paused %s", record["by"], module)
        return pause_of(module, at_ms, stands)

    def resume(self, module: str, *, by: str) -> bool:
        """Let a module take calls again; its flag goes too, and its failures are forgotten.

        :returns: whether it was paused or flagged.
        """
        return self._off(module, by, "resumed", PAUSED, PERSON)

    def ack(self, module: str, *, by: str) -> bool:
        """A person has come: lower the flag and forget the failures; a pause stays.

        :returns: whether it was flagged.
        """
        return self._off(module, by, "acknowledged the failures of", PERSON)

    def roll_back(self, module: str, *, by: str, reason: str, code: str = "") -> RollBack:
        """Let a stage ask its former model; if it does already, that record stays.

        :param code: the failure that asks for it, if one does.
        """
        module = self._stage(module)
        record = {"by": _printable("by", by, LONGEST_NAME), "reason": _reason(reason), "code": code}
        answer, found = self._on(ROLLED_BACK, module, record, keep=True)
        if answer == OK:
            log.warning("%s rolled %s back to its former model", record["by"], module)
        at_ms, stands = read_record(found)
        return roll_back_of(module, at_ms, stands)

    def restore(self, module: str, *, by: str) -> bool:
        """Let a stage ask its present model again.

        :returns: whether it was rolled back.
        """
        return self._off(self._stage(module), by, "restored", ROLLED_BACK)

    def need_person(self, module: str, code: str, limit: int, *, pause: bool = False) -> bool:
        """Raise the flag of a module, if its failures in a row are as many as ``limit`` still.

        :param code: what it fails with.
        :param pause: whether it takes no more calls until a person has come.
        :returns: whether this call raised it: once, however many workers ask.
        """
        module = self.modules.resolve(module)
        flag = {"code": code, "failures": limit}
        reason = f"{limit} failures in a row: {code}"
        record = {"by": CHECKLIST, "reason": reason, "automatic": True}
        args: list[str | int] = [f"{module} {code}", limit, f"{PERSON} {module}", json.dumps(flag)]
        args += [f"{PAUSED} {module}" if pause else "", json.dumps(record)]
        answer = self._store.run(verbs.FLAG, [self._names.switches, self._names.streaks], args)
        if answer[0] == OK:
            log.error("%s needs a person%s: %s", module, " and is paused" if pause else "", reason)
        return bool(answer[0] == OK)

    def _on(
        self, decision: str, module: str, record: dict[str, str], *, keep: bool
    ) -> tuple[bytes, bytes]:
        args: list[str | int] = [f"{decision} {module}", json.dumps(record), int(keep)]
        answer, stands = self._store.run(verbs.SWITCH_ON, [self._names.switches], args)
        return answer, stands

    def _off(self, module: str, by: str, did: str, *decisions: str) -> bool:
        module, by = self.modules.resolve(module), _printable("by", by, LONGEST_NAME)
        fields = [f"{decision} {module}" for decision in decisions]
        keys = [self._names.switches, self._names.streaks]
        stood = self._store.run(verbs.SWITCH_OFF, keys, [module, *fields])
        if stood:
            log.warning("%s %s %s", by, did, module)
        return bool(stood)

    def _stage(self, module: str) -> str:
        module = self.modules.resolve(module)
        if not module.startswith("stage:"):
            raise NotFound(f"{module} has no former model: only a stage has.")
        return module


def _reason(text: str) -> str:
    return _printable("reason", text, LONGEST_REASON)


def _printable(what: str, text: str, longest: int) -> str:
    """It is shown on terminals: no control characters."""
    text = text.strip()
    if not text or len(text) > longest or not text.isprintable():
        raise InvalidInput(f"{what}: write 1 to {longest} printable characters.")
    return text
