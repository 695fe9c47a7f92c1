"""Counts over a window in this worker alone: what is known while Redis is not."""

from __future__ import annotations

import time

#: a window is counted in so many parts, here and in ``tally.lua``
PARTS = 10

#: name and window in ms
Count = tuple[str, int]


class LocalWindows:
    """Counts of one worker; a window moves on by a tenth of its length."""

    def __init__(self) -> None:
        self._parts: dict[Count, dict[int, int]] = {}

    def add(self, count: Count, times: int) -> None:
        """It happened so many times more."""
        part = _part(count)
        held = self._parts.setdefault(count, {})
        held[part] = held.get(part, 0) + times
        if len(held) > PARTS:
            for old in [each for each in held if each <= part - PARTS]:
                del held[old]

    def total(self, count: Count) -> int:
        """How often over the window that ends now."""
        oldest = _part(count) - PARTS
        held = self._parts.get(count, {})
        return sum(times for part, times in held.items() if part > oldest)

    def __len__(self) -> int:
        return len(self._parts)

    def __contains__(self, count: Count) -> bool:
        return count in self._parts


def _part(count: Count) -> int:
    return int(time.monotonic() * 1000 * PARTS / count[1])
