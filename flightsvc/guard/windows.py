"""Two things that a worker knows of the last seconds: how many retries, how many failures."""

from __future__ import annotations

from collections import deque
from time import monotonic

#: a window moves on by this share of its length
PART = 0.1


class Window:
    """How often something happened within the last ``length_s`` seconds, to a tenth of it."""

    def __init__(self, length_s: float) -> None:
        self._part_s = length_s * PART
        self._parts: deque[list[int]] = deque()  # number of the part, count
        self._sum = 0

    def add(self) -> None:
        """It happened."""
        part = int(monotonic() / self._part_s)
        if self._parts and self._parts[-1][0] == part:
            self._parts[-1][1] += 1
        else:
            self._drop(part)
            self._parts.append([part, 1])
        self._sum += 1

    def total(self) -> int:
        """How often."""
        self._drop(int(monotonic() / self._part_s))
        return self._sum

    def _drop(self, part: int) -> None:
        oldest = part - round(1 / PART)
        while self._parts and self._parts[0][0] <= oldest:
            self._sum -= self._parts.popleft()[1]


class RetryBudget:
    """Retries of one target: at most a share of its calls, but always a few.

    Without it a model that fails for everybody would get three times its load just then.

    :param ratio: retries to calls.
    :param least: retries that are allowed in any case.
    :param window_s: over which both are counted, in s.
    """

    def __init__(self, ratio: float, least: int, window_s: float) -> None:
        self._ratio = ratio
        self._least = least
        self._calls = Window(window_s)
        self._retries = Window(window_s)

    def called(self) -> None:
        """A call begins."""
        self._calls.add()

    def left(self) -> int:
        """How many retries are allowed now."""
        allowed = max(self._least, int(self._ratio * self._calls.total()))
        return max(0, allowed - self._retries.total())

    def take(self) -> bool:
        """Charge one retry; whether it is allowed."""
        if not self.left():
            return False
        self._retries.add()
        return True
