"""What a model server has seen since its start or its last reset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from flightsvc.model_server.http import ClientGone

#: Distinct requests that are counted one by one; a long run must not fill the memory.
MAX_KEYS = 200_000


@dataclass(slots=True)
class Stats:
    """Counters of model calls; the server's own pages are not counted."""

    calls: int = 0
    #: files that were uploaded for a workflow; they are no calls
    uploads: int = 0
    open_calls: int = 0
    max_open_calls: int = 0
    #: calls whose client went away before the end of the answer
    cancelled: int = 0
    #: connections that have brought at least one call or upload
    connections: int = 0
    by_key: Counter[str] = field(default_factory=Counter)
    by_rule: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def call(self, key: str, rule: str, *, upload: bool = False) -> Iterator[None]:
        """Count a call for as long as it is being answered; an upload is open like a call, and
        counted by its rule, but it is no call."""
        self.by_rule[rule] += 1
        if upload:
            self.uploads += 1
        else:
            self.calls += 1
            if key in self.by_key or len(self.by_key) < MAX_KEYS:
                self.by_key[key] += 1
        self.open_calls += 1
        self.max_open_calls = max(self.max_open_calls, self.open_calls)
        try:
            yield
        except ClientGone:
            self.cancelled += 1
            raise
        finally:
            self.open_calls -= 1

    def as_json(self, open_connections: int) -> dict[str, Any]:
        """All of it, by name."""
        return {
            "calls": self.calls,
            "uploads": self.uploads,
            "open_calls": self.open_calls,
            "max_open_calls": self.max_open_calls,
            "cancelled": self.cancelled,
            "connections": self.connections,
            "open_connections": open_connections,
            "by_key": dict(self.by_key),
            "by_rule": dict(self.by_rule),
        }
