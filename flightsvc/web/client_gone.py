"""Whether a client is still there, while there is nothing to send it.

WSGI does not say. gunicorn hands out the client's socket, and the kernel knows whether the other
side has closed it: POLLRDHUP tells so even where unread bytes of a next request stand before the
end, which hide it from a peek. gevent's poll would switch to other greenlets; the original one,
asked not to wait, is one system call.
"""

from __future__ import annotations

import select
from collections.abc import Mapping
from typing import Any

from gevent.monkey import get_original

#: gunicorn's name for the client's socket
SOCKET = "gunicorn.socket"
#: Time between two looks whether a silent flight's caller is still there, in s.
LOOK_S = 1.0
#: What the log says of a client that went.
GONE = "CLIENT_GONE"

#: not on every system; without it a reset is seen, an end is not
_GONE = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR | select.POLLNVAL

_poll = get_original("select", "poll")


class ClientWatch:
    """Looks whether one request's client has gone.

    :param environ: of the request; where the server does not say its socket, nobody ever goes.
    """

    def __init__(self, environ: Mapping[str, Any]) -> None:
        self._poller: Any = None
        fileno = getattr(environ.get(SOCKET), "fileno", lambda: -1)()
        if isinstance(fileno, int) and fileno >= 0:
            self._poller = _poll()
            self._poller.register(fileno, getattr(select, "POLLRDHUP", 0))

    def gone(self) -> bool:
        """Whether it closed the connection, or its sending side of it. Never waits."""
        if self._poller is None:
            return False
        return any(event & _GONE for _, event in self._poller.poll(0))
