"""The way between a worker and its server, where requests can be held and replies lost."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import gevent
from gevent.event import Event
from gevent.server import StreamServer

from tests.support.redis_server import RedisServer


@dataclass(eq=False)
class Incident:
    """Something that happens to the next request with a word in it.

    :param loses: the request arrives and its reply is lost, instead of the request being held.
    """

    word: bytes
    loses: bool = False
    #: set when the request has come
    met: Event = field(default_factory=Event)
    #: set when the reply is lost
    lost: Event = field(default_factory=Event)
    _go: Event = field(default_factory=Event)

    def let_go(self) -> None:
        """Let a held request go on."""
        self._go.set()

    def happen(self) -> None:
        self.met.set()
        if not self.loses:
            self._go.wait()


class Wire:
    """A unix socket that hands everything on to a server, unless told otherwise."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._folder = tempfile.mkdtemp(prefix="fs-", dir="/tmp")
        self._incidents: list[Incident] = []
        self._links: list[_Link] = []
        self._listening: StreamServer | None = None

    @property
    def url(self) -> str:
        """What ``FLIGHTSVC_REDIS_URL`` takes."""
        return f"unix://{self._folder}/s"

    def hold(self, word: bytes) -> Incident:
        """The next request with this word waits until it is let go."""
        return self._plan(Incident(word))

    def lose_reply(self, word: bytes) -> Incident:
        """The next request with this word is carried out, but its reply is lost: a broken line."""
        return self._plan(Incident(word, loses=True))

    def mend(self) -> None:
        """Take connections (again)."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{self._folder}/s")
        listener.listen(128)
        self._listening = StreamServer(listener, self._connected)
        self._listening.start()

    def cut(self) -> None:
        """Break all connections and take no new ones."""
        if self._listening is not None:
            self._listening.stop(timeout=0)
            os.unlink(f"{self._folder}/s")
        for link in self._links:
            link.close()
        self._links.clear()

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
        shutil.rmtree(self._folder, ignore_errors=True)

    def take(self, request: bytes) -> Incident | None:
        """The incident that a request meets, if any."""
        for incident in self._incidents:
            if incident.word in request:
                self._incidents.remove(incident)
                return incident
        return None

    def _plan(self, incident: Incident) -> Incident:
        self._incidents.append(incident)
        return incident

    def _connected(self, client: socket.socket, _address: Any) -> None:
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._server.socket_path)
        link = _Link(self, client, server)
        self._links.append(link)
        link.run()


class _Link:
    """One connection through the wire."""

    def __init__(self, wire: Wire, client: socket.socket, server: socket.socket) -> None:
        self._wire = wire
        self._client = client
        self._server = server
        self._loses: Incident | None = None

    def run(self) -> None:
        back = gevent.spawn(self._pump, self._server, self._reply)
        self._pump(self._client, self._request)
        back.join()

    def close(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _pump(self, source: socket.socket, hand_on: Any) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                hand_on(data)
        self.close()

    def _request(self, data: bytes) -> None:
        incident = self._wire.take(data)
        if incident is not None:
            incident.happen()
            self._loses = incident if incident.loses else None
        self._server.sendall(data)

    def _reply(self, data: bytes) -> None:
        if self._loses is not None:
            self._loses.lost.set()
            self.close()
            return
        self._client.sendall(data)
