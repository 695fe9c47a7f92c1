"""How far a flight has come, told to those of this worker who want to watch it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gevent.queue import SimpleQueue

#: the steps of a flight, in order; not every flight takes all of them
RECEIVED, LOCKED, WAITING, RUNNING, STORED = "received", "locked", "waiting", "running", "stored"


class Progress:
    """The watched flights of a worker."""

    def __init__(self) -> None:
        self._steps: dict[str, str] = {}
        self._watchers: dict[str, list[SimpleQueue[str]]] = {}

    def tell(self, flight_id: str, step: str) -> None:
        """A call of this worker has come to a step; never blocks."""
        self._steps[flight_id] = step
        for watcher in self._watchers.get(flight_id, ()):
            watcher.put(step)

    def over(self, flight_id: str) -> None:
        """The call has ended."""
        self._steps.pop(flight_id, None)

    @contextmanager
    def watch(self, flight_id: str) -> Iterator[SimpleQueue[str]]:
        """The steps from now on, the present one first."""
        watcher: SimpleQueue[str] = SimpleQueue()
        if flight_id in self._steps:
            watcher.put(self._steps[flight_id])
        self._watchers.setdefault(flight_id, []).append(watcher)
        try:
            yield watcher
        finally:
            watchers = self._watchers[flight_id]
            watchers.remove(watcher)
            if not watchers:
                del self._watchers[flight_id]
