"""One attempt, and the time it may take."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import gevent

from flightsvc.errors import AttemptTimeout

T = TypeVar("T")

#: the attempt is told this much less than its limit, in s, so that it closes its socket first …
CLOSE_FIRST_S = 0.02
#: … or this share of the limit, where that is less
CLOSE_FIRST_SHARE = 0.05


def run_within(limit_s: float, attempt: Callable[[float], T]) -> T:
    """Run ``attempt`` for at most ``limit_s`` seconds.

    Only the timer that is started here becomes an :class:`AttemptTimeout`; a ``gevent.Timeout`` of
    the attempt itself, or of whoever stands further out, passes as it is.

    :param attempt: gets the seconds it should take at most, a little less than ``limit_s``.
    :raises AttemptTimeout: it took longer.
    """
    timer = gevent.Timeout(limit_s)
    timer.start()
    try:
        return attempt(limit_s - min(CLOSE_FIRST_S, limit_s * CLOSE_FIRST_SHARE))
    except gevent.Timeout as fired:
        if fired is not timer:
            raise
        raise AttemptTimeout(f"The model did not answer within {limit_s:.1f} s.") from None
    finally:
        timer.close()
