"""Redis's wire format, as far as a proxy needs it: where frames end, and what a request says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from flightsvc.store.scripts import source

#: Whether a request is meant, by its frame.
Match = Callable[[bytes], bool]

#: Frames that hold others, and how many times the number in their head.
_HOLDS = {b"*": 1, b"~": 1, b">": 1, b"%": 2}
_BULK = (b"$", b"=", b"!")


def frame_end(data: bytes | bytearray, at: int = 0) -> int | None:
    """Where the frame that begins at ``at`` ends; None while it is not whole."""
    line = data.find(b"\r\n", at)
    if line < 0:
        return None
    kind, number, at = bytes(data[at : at + 1]), data[at + 1 : line], line + 2
    if kind in _BULK:
        end = at + max(int(number) + 2, 0) if int(number) >= 0 else at
        return end if end <= len(data) else None
    for _ in range(max(int(number), 0) * _HOLDS[kind] if kind in _HOLDS else 0):
        inner = frame_end(data, at)
        if inner is None:
            return None
        at = inner
    return at


class Frames:
    """Cuts what comes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are whole now, in order."""
        self._buffer += data
        whole, at = [], 0
        while (end := frame_end(self._buffer, at)) is not None:
            whole.append(bytes(self._buffer[at:end]))
            at = end
        del self._buffer[:at]
        return whole


def words(request: bytes) -> list[bytes]:
    """The words of a request."""
    if not request.startswith(b"*"):
        return request.split()
    found, at = [], request.find(b"\r\n") + 2
    while at < len(request):
        line = request.find(b"\r\n", at)
        size = int(request[at + 1 : line])
        found.append(request[line + 2 : line + 2 + size])
        at = line + 2 + size + 2
    return found


def holding(part: bytes) -> Match:
    """Requests that have these bytes in them: a command, a key, a script's hash."""
    return lambda request: part in request


def command(name: str) -> Match:
    """Requests with this command."""
    return lambda request: words(request)[0].upper() == name.upper().encode()


def script(name: str, *, key: str = "") -> Match:
    """Calls of one of our scripts, by hash or whole.

    :param name: as its file in ``lua/``.
    :param key: and with this in one of its words.
    """
    text = source(name)
    known = (text, hashlib.sha1(text).hexdigest().encode())

    def match(request: bytes) -> bool:
        said = words(request)
        called = said[0].upper() in (b"EVAL", b"EVALSHA") and said[1] in known
        return called and any(key.encode() in word for word in said)

    return match
