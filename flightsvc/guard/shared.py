"""What the guards of all workers tell each other about breakers; handed to the guard."""

from __future__ import annotations

from typing import Protocol

from flightsvc.guard.routes import Target


class ProbeLease(Protocol):
    """Lets one worker at a time try whether a target is back. No method raises."""

    def take(self, target: Target, lease_s: float, /) -> str | None:
        """A token, good for ``lease_s`` seconds; None if another worker holds the lease."""

    def give_back(self, target: Target, token: str, /) -> None:
        """End the lease early, if it is still this token's."""

    def retry_after_s(self, target: Target, /) -> float:
        """After how many seconds another try may make sense; 0: not known."""


class SharedGuardState(ProbeLease, Protocol):
    """No method raises; only ``take`` may wait, and shortly."""

    def breaker_open(self, target: Target, /) -> float | None:
        """For how many seconds what another worker told by ``opened`` still holds; or None."""

    def opened(self, target: Target, for_s: float, /) -> None:
        """Tell the others that a breaker opened."""

    def closed(self, target: Target, /) -> None:
        """Tell the others that the target is back."""


class LoneWorker:
    """The state of a worker that has no others."""

    def breaker_open(self, _target: Target, /) -> float | None:
        return None

    def opened(self, _target: Target, _for_s: float, /) -> None:
        return None

    def closed(self, _target: Target, /) -> None:
        return None

    def take(self, _target: Target, _lease_s: float, /) -> str | None:
        return "lone"

    def give_back(self, _target: Target, _token: str, /) -> None:
        return None

    def retry_after_s(self, _target: Target, /) -> float:
        return 0.0
