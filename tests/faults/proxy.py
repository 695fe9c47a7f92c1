"""The line between workers and their Redis, where everything can happen that happens to lines.

It runs in greenlets of whoever makes it, understands where requests and replies begin and end,
and is told at any time what to do: to one request (:meth:`Proxy.plan`, chosen by its command, a
script's hash or a key) or to the whole line (:meth:`Proxy.delay`, :meth:`Proxy.fall_silent`,
:meth:`Proxy.reset`, :meth:`Proxy.cut`).

A silent line loses nothing: like a network that is mended, it brings what was sent into it later,
also from clients that have gone meanwhile.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from types import TracebackType
from typing import Any, Self

from gevent.event import Event
from gevent.server import StreamServer

from tests.faults.incident import Harm, Incident
from tests.faults.link import Link
from tests.faults.resp import Match, holding
from tests.support.redis_server import RedisServer


class Proxy:
    """A port (or a unix socket) that hands everything on to a server, unless told otherwise.

    :param server: where to; by its unix socket.
    :param tcp: a port of 127.0.0.1, or a unix socket in a folder of its own.
    """

    def __init__(self, server: RedisServer, *, tcp: bool = True) -> None:
        self._server = server
        self._folder = "" if tcp else tempfile.mkdtemp(prefix="fs-", dir="/tmp")
        self._port = 0
        self._incidents: list[Incident] = []
        self._links: set[Link] = set()
        self._listening: StreamServer | None = None
        #: seconds that each request and each reply takes on its way
        self.request_delay_s = self.reply_delay_s = 0.0
        #: set while requests, and replies, are handed on
        self.requests_go, self.replies_go = Event(), Event()
        self.heal()

    @property
    def url(self) -> str:
        """What ``FLIGHTSVC_REDIS_URL`` takes."""
        return f"unix://{self._folder}/s" if self._folder else f"redis://127.0.0.1:{self._port}/0"

    @property
    def links(self) -> int:
        """How many connections are open."""
        return len(self._links)

    # -- one request -----------------------------------------------------------------------

    def plan(self, harm: Harm, match: Match | bytes, *, times: int | None = 1) -> Incident:
        """Do this to the next requests that match.

        :param match: which; bytes: those that have them in them.
        """
        incident = Incident(holding(match) if isinstance(match, bytes) else match, harm, times)
        self._incidents.append(incident)
        return incident

    def hold(self, match: Match | bytes) -> Incident:
        """The next such request waits until it is let go."""
        return self.plan(Harm.HOLD, match)

    def lose_reply(self, match: Match | bytes) -> Incident:
        """The next such request is carried out, but its reply is lost: a broken line."""
        return self.plan(Harm.RESET_REPLY, match)

    def take(self, request: bytes) -> Incident | None:
        """The incident that a request meets, if any; called for each, before it is handed on."""
        self._incidents = [each for each in self._incidents if not each.over]
        for incident in self._incidents:
            if incident.match(request):
                incident.meet()
                return incident
        return None

    # -- the whole line --------------------------------------------------------------------

    def delay(self, *, request_s: float = 0.0, reply_s: float = 0.0) -> None:
        """From now on each request and each reply takes so long on its way."""
        self.request_delay_s, self.reply_delay_s = request_s, reply_s

    def fall_silent(self, *, requests: bool = True, replies: bool = True) -> None:
        """From now on nothing arrives; connections can be made, and stay open."""
        for going, stop in ((self.requests_go, requests), (self.replies_go, replies)):
            if stop:
                going.clear()

    def heal(self) -> None:
        """End silence, delays and all plans; what was sent into the silence arrives now."""
        self.delay()
        for incident in self._incidents:
            incident.let_go()
        self.requests_go.set()
        self.replies_go.set()

    def reset(self) -> int:
        """Reset all connections; new ones are taken. How many they were."""
        links = list(self._links)
        for link in links:
            link.close(reset=True)
        return len(links)

    def mend(self) -> None:
        """Take connections (again)."""
        self._listening = StreamServer(self._listener(), self._connected)
        self._listening.start()

    def cut(self) -> None:
        """Break all connections and take no new ones."""
        if self._listening is not None:
            self._listening.stop(timeout=0)
            self._listening = None
            if self._folder:
                os.unlink(f"{self._folder}/s")
        for link in list(self._links):
            link.close()

    def __enter__(self) -> Self:
        self.mend()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cut()
        self.heal()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _listener(self) -> socket.socket:
        if not self._folder:
            listener = socket.create_server(("127.0.0.1", self._port), backlog=512)
            self._port = listener.getsockname()[1]
            return listener
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{self._folder}/s")
        listener.listen(512)
        return listener

    def _connected(self, client: socket.socket, _address: Any) -> None:
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._server.socket_path)
        except OSError:
            server.close()
            return  # nobody listens there: the client's connection ends
        link = Link(self, client, server)
        self._links.add(link)
        try:
            link.run()
        finally:
            self._links.discard(link)
