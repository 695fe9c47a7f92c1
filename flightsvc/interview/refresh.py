"""An older answer stood in for a new one: a new one is asked for meanwhile, in the background."""

from __future__ import annotations

import logging
from collections.abc import Callable

import gevent

from flightsvc.errors import FlightSvcError
from flightsvc.flight.result import FlightResult

log = logging.getLogger(__name__)

#: waits before the tries, in s; the first is longer than a failure is told to who asks anew
TRIES_S = (2.0, 10.0, 60.0)
#: questions that a worker asks again at once; more are left as they are
MOST = 100

Ask = Callable[[], FlightResult]


class Refresher:
    """Asks again, and tells nobody: a good answer is stored as any other, for who asks next.

    :param tries_s: waits before the tries, in s.
    """

    def __init__(self, tries_s: tuple[float, ...] = TRIES_S) -> None:
        self._tries_s = tries_s
        self._asking: set[str] = set()

    def later(self, flight_id: str, ask: Ask) -> None:
        """Ask for a new answer, unless that is done already; never waits.

        :param flight_id: what the question is.
        :param ask: asks it, as any caller does.
        """
        if flight_id in self._asking or len(self._asking) >= MOST:
            return
        self._asking.add(flight_id)
        gevent.spawn(self._run, flight_id, ask)

    def _run(self, flight_id: str, ask: Ask) -> None:
        try:
            for wait_s in self._tries_s:
                gevent.sleep(wait_s)
                if _is_answered(ask):
                    return
            log.info("flight %s: its older answer stays, no new one came", flight_id)
        finally:
            self._asking.discard(flight_id)


def _is_answered(ask: Ask) -> bool:
    try:
        return ask().fallback is None
    except FlightSvcError:  # it has its line in the log, as every failure
        return False
