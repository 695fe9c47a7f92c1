"""A connection of the model server: requests in, exactly the wanted bytes out."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from http import HTTPStatus

from gevent.socket import socket as GeventSocket  # noqa: N812

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with no time: close() sends RST


class BadRequest(Exception):
    """What came is not a request that this server understands."""


class EndOfConnection(Exception):
    """The connection is to be closed now, by us or because the client has gone."""


class ResetConnection(EndOfConnection):
    """The connection is to be reset now, not closed."""


class ClientGone(EndOfConnection):
    """The client closed the connection before the answer was complete."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    keep_alive: bool


class Connection:
    """One accepted connection, kept open between requests."""

    def __init__(self, sock: GeventSocket) -> None:
        self._sock = sock
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()
        #: serves the server's own pages; left out of the statistics
        self.control = False
        #: has brought a model call
        self.used = False

    def fileno(self) -> int:
        """The socket's number, for waiting on it."""
        return self._sock.fileno()

    def send(self, data: bytes) -> None:
        """Send all of it now, in a segment of its own if the kernel has room.

        :raises ClientGone: nobody is there to take it.
        """
        try:
            self._sock.sendall(data)
        except OSError:
            raise ClientGone from None

    def client_has_gone(self) -> bool:
        """Whether what makes the socket readable is its end; bytes wait to be read otherwise."""
        try:
            return self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self, *, reset: bool = False) -> None:
        """Close it: the client sees the end, or a reset."""
        try:
            if reset:
                self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            else:
                self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is closed already
        self._sock.close()

    def read_request(self) -> Request | None:
        """The next request; None if the client closed instead.

        :raises BadRequest: it is not HTTP, or too large.
        """
        head = self._read_head()
        if head is None:
            return None
        lines = head.decode("latin-1").split("\r\n")
        try:
            method, path, version = lines[0].split(" ")
        except ValueError:
            raise BadRequest("no request line") from None
        headers: dict[str, str] = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        if headers.get("expect", "").lower() == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        wish = headers.get("connection", "").lower()
        keep_alive = wish != "close" if version == "HTTP/1.1" else wish == "keep-alive"
        return Request(method, path, headers, self._read_body(headers), keep_alive)

    def _read_head(self) -> bytes | None:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise BadRequest("the head is too large")
            if not self._fill():
                return None
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        return head

    def _read_body(self, headers: dict[str, str]) -> bytes:
        try:
            if headers.get("transfer-encoding", "").lower() == "chunked":
                return self._read_chunked()
            size = int(headers.get("content-length", "0"))
        except ValueError:
            raise BadRequest("the length is not a number") from None
        return self._take(size)

    def _read_chunked(self) -> bytes:
        body = bytearray()
        while size := int(self._read_line().split(b";")[0], 16):
            body += self._take(size)
            if len(body) > MAX_BODY_BYTES:
                raise BadRequest("the body is too large")
            self._read_line()
        while self._read_line():
            pass  # trailers
        return bytes(body)

    def _read_line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > MAX_HEAD_BYTES or not self._fill():
                raise BadRequest("a line is cut or too long")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= MAX_BODY_BYTES:
            raise BadRequest("the body is too large")
        while len(self._buffer) < size:
            if not self._fill():
                raise BadRequest("the body is cut")
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _fill(self) -> bool:
        """Read what there is; False at the end."""
        try:
            data = self._sock.recv(65_536)
        except OSError:
            return False
        self._buffer += data
        return bool(data)


def response_head(status: int, headers: dict[str, str]) -> bytes:
    """The head of a response, with the empty line."""
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = "Unknown"
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {headers[name]}" for name in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
