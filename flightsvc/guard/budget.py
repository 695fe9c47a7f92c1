"""The time that one guarded call may take, from its start to its end."""

from __future__ import annotations

from time import monotonic

#: an attempt with less time than this is not worth a model call, in s …
USEFUL_S = 0.1
#: … or this share of the whole budget, where that is less
USEFUL_SHARE = 0.1


class Budget:
    """A clock that runs down from ``total_s`` seconds, starting now."""

    def __init__(self, total_s: float) -> None:
        self._end = monotonic() + total_s
        self._useful_s = min(USEFUL_S, total_s * USEFUL_SHARE)

    def left_s(self) -> float:
        """Seconds left; negative when overdrawn."""
        return self._end - monotonic()

    def is_spent(self) -> bool:
        """Whether no useful attempt fits any more."""
        return self.left_s() < self._useful_s

    def patience_s(self) -> float:
        """Seconds that may go by in a queue or a sleep so that a useful attempt still fits."""
        return max(0.0, self.left_s() - self._useful_s)
