"""Looks once a second for all open status pages of a worker, and only while there are some."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import gevent
from gevent.event import Event
from gevent.lock import BoundedSemaphore

from flightsvc.errors import FlightSvcError, TooManyWaiters
from flightsvc.settings import Settings
from flightsvc.web.board_shapes import BoardShown

log = logging.getLogger("flightsvc.web")

#: time in s between two looks
LOOK_S = 1.0
#: pages that one worker serves at once at most
MOST_PAGES = 32


class Lookout:
    """One worker's looks, shared by everybody who watches.

    :param look: looks now; waits for Redis.
    :param most: pages that may be open at once.
    """

    def __init__(self, look: Callable[[], BoardShown], most: int) -> None:
        self._look = look
        self._most = most
        self._turn = BoundedSemaphore()
        self._seen: BoardShown | None = None
        self._seen_at = 0.0
        self._new = Event()
        self._looking: gevent.Greenlet[[], None] | None = None
        #: pages that are open
        self.pages = 0

    def now(self) -> BoardShown:
        """How things stand; at most about a second old.

        :raises FlightSvcError: this process cannot say.
        """
        with self._turn:  # who comes meanwhile sees what the first one saw
            if self._seen is None or time.monotonic() - self._seen_at > 0.9 * LOOK_S:
                self._see()
            assert self._seen is not None
            return self._seen

    def enter(self) -> None:
        """One more page is open, until :meth:`leave`.

        :raises TooManyWaiters: there are too many already.
        """
        if self.pages >= self._most:
            raise TooManyWaiters(
                "As many status pages as may be are open on this worker.", retry_after_s=5
            )
        self.pages += 1
        if self._looking is None or self._looking.dead:
            self._looking = gevent.spawn(self._go_on)

    def leave(self) -> None:
        """A page was closed."""
        self.pages -= 1

    def next(self, after: BoardShown | None, timeout_s: float) -> BoardShown | None:
        """What was seen after that; None if nothing was within the time."""
        if self._seen is not None and self._seen is not after and self._is_fresh():
            return self._seen
        self._new.wait(timeout_s)
        return self._seen if self._seen is not after else None

    def _go_on(self) -> None:
        while self.pages:
            began = time.monotonic()
            try:
                self.now()
            except FlightSvcError as error:  # the process stops; the pages end by themselves
                log.debug("the status page cannot look: %s", error)
            except Exception:
                log.exception("the status page cannot look")
            gevent.sleep(max(0.05, max(self._seen_at, began) + LOOK_S - time.monotonic()))

    def _see(self) -> None:
        self._seen = self._look()
        self._seen_at = time.monotonic()
        new, self._new = self._new, Event()
        new.set()

    def _is_fresh(self) -> bool:
        return time.monotonic() - self._seen_at < 2 * LOOK_S


def most_pages(settings: Settings) -> int:
    """How many pages may be open: what callers may not take is not theirs alone either."""
    spare = settings.worker_connections - settings.max_waiters
    return min(MOST_PAGES, spare // 2)
