"""Sends one scripted answer: in the wanted pieces, cut or silent at the wanted byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import gevent
from gevent.event import Event

from flightsvc.model_server.http import (
    Connection,
    EndOfConnection,
    ResetConnection,
    response_head,
)
from flightsvc.model_server.rules import Behave


class CutShort(Exception):
    """The answer has been cut cleanly; the connection lives on."""


class Sender:
    """Writes one answer to a connection.

    :param framing: how the client learns where the body ends.
    """

    def __init__(self, conn: Connection, behave: Behave, framing: str) -> None:
        self._conn = conn
        self._behave = behave
        self._framing = framing
        self._sent = 0
        limits = [behave.cut_after_bytes, behave.silent_after_bytes]
        self._limit = min((limit for limit in limits if limit is not None), default=None)
        self._at_limit: Callable[[], NoReturn] = (
            self.cut if self._limit == behave.cut_after_bytes else stay_silent
        )

    def head(self, content_type: str, length: int | None, *, keep_alive: bool) -> None:
        """Send the head; ``length`` is the body's, if that is how it is framed."""
        behave = self._behave
        headers = {"Content-Type": content_type}
        if self._framing == "chunked":
            headers["Transfer-Encoding"] = "chunked"
        elif self._framing == "length":
            declared = behave.declared_length
            headers["Content-Length"] = str(length if declared is None else declared)
        if not keep_alive:
            headers["Connection"] = "close"
        if behave.encoding != "identity":
            headers["Content-Encoding"] = behave.encoding
        if behave.retry_after is not None:
            headers["Retry-After"] = str(behave.retry_after)
        self._conn.send(response_head(behave.status, headers | behave.headers))

    def body(self, data: bytes) -> None:
        """Send a piece of the body, itself in pieces of ``write_bytes``.

        :raises CutShort: the script cuts it cleanly here.
        :raises EndOfConnection: the script cuts it otherwise, or the client has gone.
        """
        size = self._behave.write_bytes or max(len(data), 1)
        for at in range(0, len(data), size):
            if self._sent and self._behave.write_delay_ms:
                gevent.sleep(self._behave.write_delay_ms / 1000)
            self._write(data[at : at + size])

    def end(self) -> None:
        """Say that the body is complete."""
        if self._framing == "chunked":
            self._conn.send(b"0\r\n\r\n")
        elif self._framing == "close":
            raise EndOfConnection

    def cut(self) -> NoReturn:
        """End the answer here, the way the script wants it.

        :raises CutShort: as if it were complete.
        :raises EndOfConnection: together with the connection.
        """
        if self._behave.cut == "clean":
            self.end()
            raise CutShort
        raise ResetConnection if self._behave.cut == "reset" else EndOfConnection

    def _write(self, piece: bytes) -> None:
        room = len(piece) if self._limit is None else self._limit - self._sent
        if self._limit is None or room > len(piece):
            self._conn.send(self._framed(piece, len(piece)))
            self._sent += len(piece)
            return
        clean = self._at_limit == self.cut and self._behave.cut == "clean"
        if room or not clean:
            self._conn.send(self._framed(piece[:room], room if clean else len(piece)))
        self._at_limit()

    def _framed(self, piece: bytes, size: int) -> bytes:
        """The bytes on the wire; a chunk that says ``size`` and is cut lacks its end."""
        if self._framing != "chunked":
            return piece
        return b"%x\r\n%b%b" % (size, piece, b"\r\n" if size == len(piece) else b"")


def stay_silent() -> NoReturn:
    """Wait until the client leaves or the server stops, which ends this greenlet."""
    Event().wait()
    raise EndOfConnection
