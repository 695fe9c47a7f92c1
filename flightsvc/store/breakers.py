"""What the workers' breakers tell each other, as the guard asks for it."""

from __future__ import annotations

from flightsvc.store.hints import BreakerHints
from flightsvc.store.leases import ProbeLeases
from flightsvc.store.watch import SharedWatch

Target = tuple[str, str]


class SharedBreakers:
    """Hints and probe leases in one. No method raises."""

    def __init__(self, watch: SharedWatch, hints: BreakerHints, probes: ProbeLeases) -> None:
        self._watch = watch
        self.opened = hints.opened
        self.closed = hints.closed
        self.take = probes.take
        self.give_back = probes.give_back
        self.retry_after_s = probes.retry_after_s

    def breaker_open(self, target: Target, /) -> float | None:
        """For how many seconds the hint about a target still holds."""
        return self._watch.breaker_open(target)
