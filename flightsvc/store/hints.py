"""Breaker hints: a breaker that opens in one worker is known to the others within a second."""

from __future__ import annotations

import time

from flightsvc.store import verbs
from flightsvc.store.names import SharedNames
from flightsvc.store.nowhere import Scripts
from flightsvc.store.watch import SharedWatch

Target = tuple[str, str]


class BreakerHints:
    """What this worker's breakers tell the others. Neither method raises or waits.

    A duty of the watch. What could not be told while it was true is not told later.
    """

    every_s = 0.0

    def __init__(self, store: Scripts, names: SharedNames, watch: SharedWatch) -> None:
        self._store = store
        self._names = names
        self._watch = watch
        self._news: dict[str, float] = {}  # target to the end of the open time; 0: closed

    def opened(self, target: Target, for_s: float, /) -> None:
        """A breaker has opened.

        :param target: provider and model.
        :param for_s: for how long, in s.
        """
        self._tell(target, time.monotonic() + for_s)

    def closed(self, target: Target, /) -> None:
        """A breaker has closed: the model is back, for the other workers too."""
        self._tell(target, 0.0)

    def pending(self) -> bool:
        return bool(self._news)

    def send(self) -> None:
        news, self._news = self._news, {}
        args: list[str | int] = []
        for target, until in news.items():
            left_ms = int((until - time.monotonic()) * 1000)
            if until == 0.0 or left_ms > 0:
                args += [target, max(0, left_ms)]
        if not args:
            return
        try:
            self._store.run(verbs.HINT, [self._names.hints], args)
        except BaseException:  # killed or failed: what came meanwhile is newer
            self._news = news | self._news
            raise

    def _tell(self, target: Target, until: float) -> None:
        self._news["/".join(target)] = until
        self._watch.wake()
