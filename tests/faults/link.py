"""One connection through the proxy."""

from __future__ import annotations

import socket
import struct
from collections import deque
from contextlib import suppress
from typing import Protocol

import gevent
from gevent.event import Event

from tests.faults.incident import Harm, Incident
from tests.faults.resp import Frames

#: SO_LINGER with no time: close() resets the connection
_RESET = struct.pack("ii", 1, 0)


class Line(Protocol):
    """What a link is told by its proxy."""

    request_delay_s: float
    reply_delay_s: float
    requests_go: Event
    replies_go: Event

    def take(self, request: bytes) -> Incident | None:
        """The incident that a request meets, if any."""


class Link:
    """Hands the frames of one connection on, both ways, until one end is gone."""

    def __init__(self, line: Line, client: socket.socket, server: socket.socket) -> None:
        self._line = line
        self._client = client
        self._server = server
        #: of each request that was handed on and has no reply yet, what its reply meets
        self._unanswered: deque[Incident | None] = deque()
        self._silent = False

    def run(self) -> None:
        """Hand on until the end."""
        back = gevent.spawn(self._carry_replies)
        self._carry_requests()
        back.join()

    def close(self, *, reset: bool = False) -> None:
        """End both sides; whoever is at the other end sees the end, or a reset."""
        for end in (self._client, self._server):
            with suppress(OSError):
                if reset:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                else:
                    end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _carry_requests(self) -> None:
        frames = Frames()
        with suppress(OSError):
            while data := self._client.recv(65536):
                gevent.sleep(self._line.request_delay_s)
                self._line.requests_go.wait()
                for frame in frames.feed(data):
                    self._request(frame)
            self._line.requests_go.wait()  # an end does not arrive through a silent line either
        self.close()

    def _carry_replies(self) -> None:
        frames = Frames()
        with suppress(OSError):
            while data := self._server.recv(65536):
                gevent.sleep(self._line.reply_delay_s)
                self._line.replies_go.wait()
                for frame in frames.feed(data):
                    self._reply(frame)
            self._line.replies_go.wait()
        self.close()

    def _request(self, frame: bytes) -> None:
        if self._silent:
            return
        incident = self._line.take(frame)
        if incident is not None and not incident.harm.to_reply:
            self._harm_request(incident, frame)
        else:
            self._send_request(frame, incident)

    def _send_request(self, frame: bytes, incident: Incident | None) -> None:
        self._unanswered.append(incident)
        self._server.sendall(frame)

    def _harm_request(self, incident: Incident, frame: bytes) -> None:
        if incident.harm is Harm.HOLD:
            incident.hold()
            self._send_request(frame, None)
        elif incident.harm is Harm.SWALLOW:
            self._silent = True
        else:
            if incident.harm is Harm.CUT:
                self._server.sendall(frame[: len(frame) // 2])
            self.close(reset=incident.harm is Harm.RESET)
        incident.done.set()

    def _reply(self, frame: bytes) -> None:
        incident = self._unanswered.popleft() if self._unanswered else None
        if self._silent:
            return
        if incident is not None:
            self._harm_reply(incident, frame)
        else:
            self._client.sendall(frame)

    def _harm_reply(self, incident: Incident, frame: bytes) -> None:
        if incident.harm is Harm.HOLD_REPLY:
            incident.hold()
            self._client.sendall(frame)
        elif incident.harm is Harm.SWALLOW_REPLY:
            self._silent = True
        else:
            if incident.harm is Harm.CUT_REPLY:
                self._client.sendall(frame[: len(frame) // 2])
            self.close(reset=incident.harm is Harm.RESET_REPLY)
        incident.done.set()
