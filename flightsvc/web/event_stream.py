"""One caller's chat as server-sent events, for as long as somebody takes them."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from gevent.hub import get_hub
from gevent.monkey import get_original

from flightsvc.gateway.caller import ChatCaller, Piece
from flightsvc.web.asking import Asking
from flightsvc.web.client_gone import GONE, LOOK_S, SOCKET, ClientWatch
from flightsvc.web.extension import Extension
from flightsvc.web.openai_errors import in_band

KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"

_Socket = get_original("socket", "socket")


class Pace(NamedTuple):
    """Times, in s.

    :param keep_alive_s: silence after which a comment is sent.
    :param send_s: longest time for which the client may take nothing.
    """

    keep_alive_s: float
    send_s: float


class EventStream:
    """The body of a streamed answer. It must be closed, also if nothing was read of it.

    Nothing here may ask for Flask's request: when a body is read, that is over.

    :param first: what the caller has read already; None: nothing yet.
    :param environ: of the request.
    :param language: in which the client is told what happened.
    """

    def __init__(
        self,
        service: Extension,
        caller: ChatCaller,
        first: Piece | None,
        asking: Asking,
        *,
        pace: Pace,
        environ: Mapping[str, Any],
        language: str,
    ) -> None:
        self._service = service
        self._caller = caller
        self._asking = asking
        self._language = language
        self._watch = ClientWatch(environ)
        self._pace = pace
        self._stuck = _StuckClient(environ.get(SOCKET), pace.send_s)
        self._events = self._rendered(first)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        self._stuck.stop()
        data = next(self._events)
        self._stuck.start()  # until somebody asks for more, this is being sent
        return data

    def close(self) -> None:
        """Nobody takes any more."""
        self._stuck.close()
        self._caller.close()

    def _rendered(self, first: Piece | None) -> Iterator[bytes]:
        if first is None:
            yield KEEP_ALIVE
        try:
            for piece in self._pieces(first):
                events = b"".join([b"data: %b\n\n" % chunk for chunk in piece.chunks])
                yield events + DONE if piece.last else events or KEEP_ALIVE
        except Exception as error:
            self._asking.failed(error)
            told = in_band(error, self._service, self._language)
            self._asking.told = str(told["code"] or "").upper()
            yield b"data: " + json.dumps({"error": told}).encode() + b"\n\n"

    def _pieces(self, piece: Piece | None) -> Iterator[Piece]:
        """All that comes; an empty one for each long silence."""
        quiet_since = time.monotonic()
        while True:
            if piece is not None and (piece.chunks or piece.last):
                yield piece
                if piece.last:
                    return
                quiet_since = time.monotonic()
            left_s = quiet_since + self._pace.keep_alive_s - time.monotonic()
            if left_s <= 0:
                yield Piece([])
                quiet_since, left_s = time.monotonic(), self._pace.keep_alive_s
            piece = self._caller.next(min(LOOK_S, left_s))
            if piece is None and self._watch.gone():
                self._asking.told = GONE
                return


class _StuckClient:
    """Shuts a connection down whose client takes nothing, and does not leave either.

    A time limit of the socket would do the same, but the server would log it as an error of its
    own.
    """

    def __init__(self, sock: Any, limit_s: float) -> None:
        self._socket = sock
        self._timer = get_hub().loop.timer(limit_s) if hasattr(sock, "shutdown") else None

    def start(self) -> None:
        """Something is being sent."""
        if self._timer is not None:
            self._timer.start(self._shut_down)

    def stop(self) -> None:
        """It was taken."""
        if self._timer is not None:
            self._timer.stop()

    def close(self) -> None:
        """The answer is over."""
        if self._timer is not None:
            self._timer.stop()
            self._timer.close()
            self._timer = None

    def _shut_down(self) -> None:
        with suppress(OSError):  # it is gone already
            # gevent's own shutdown would raise in the greenlet that sends, as if we had closed it
            same = _Socket(fileno=os.dup(self._socket.fileno()))
            same.shutdown(socket.SHUT_RDWR)
            same.close()
