"""One flight's part of a history, and the faults around it."""

from __future__ import annotations

from functools import cached_property

from tests.proof.history import Entry


class Story:
    """One flight's entries, and the faults of the run."""

    def __init__(self, entries: list[Entry], faults: list[Entry]) -> None:
        self.entries = entries
        self.faults = faults

    def of(self, what: str, *got: str) -> list[Entry]:
        """The entries of a kind, with one of these answers."""
        return [e for e in self.entries if e.what == what and (not got or e.got in got)]

    @cached_property
    def grants(self) -> list[Entry]:
        return self.of("acquire", "OWNER_NEW", "OWNER_TAKEOVER")

    @cached_property
    def calls(self) -> list[Entry]:
        return self.of("call")

    def killed(self, worker: str, after: float) -> bool:
        """Whether a worker was killed after a time."""
        return any(f.worker == worker and f.got == "killed" and f.at >= after for f in self.faults)

    def frozen_s(self, worker: str, since: float, until: float) -> float:
        """How long a worker stood still between two times."""
        total, stopped = 0.0, None
        for fault in [f for f in self.faults if f.worker == worker]:
            if fault.got == "stopped":
                stopped = fault.at
            elif stopped is not None:
                total += max(0.0, min(until, fault.at) - max(since, stopped))
                stopped = None
        return total

    def lost_between(self, since: float, until: float) -> bool:
        """Whether data was lost between two times."""
        return any(f.got.startswith("lost") and since <= f.at <= until for f in self.faults)
