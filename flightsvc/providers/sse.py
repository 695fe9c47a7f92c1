"""Server-sent events, read from bytes (WHATWG HTML, 9.2.6).

Bytes are split into lines before anything is decoded, so a character that was cut in two between
two pieces is whole again; the form is UTF-8, whatever a charset says. Lines end with CR LF, LF or
CR, in any mixture; comments are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flightsvc.errors import AnswerInvalid

#: Longest event, in bytes.
MAX_EVENT_BYTES = 8 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """One event: its data, lines joined by LF, and its name (empty: ``message``)."""

    data: bytes
    name: bytes = b""


class SseParser:
    """Pieces of a body in, whole events out.

    :param limit: longest event, in bytes.
    """

    def __init__(self, limit: int = MAX_EVENT_BYTES) -> None:
        self._limit = limit
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0
        self._name = b""
        self._begun = False
        self._after_cr = False

    def feed(self, piece: bytes) -> Iterator[SseEvent]:
        """The events that this piece completes.

        :raises AnswerInvalid: an event is longer than the limit.
        """
        for line in self._lines(piece):
            event = self._take(line)
            if event is not None:
                yield event
        if len(self._rest) + self._size > self._limit:
            raise AnswerInvalid(
                f"An event of the model's stream is larger than {self._limit} bytes.",
                code="AI_ANSWER_TOO_LARGE",
            )

    def end(self) -> Iterator[SseEvent]:
        """What was begun when the body ended; many servers leave out the last empty line."""
        rest, self._rest = self._rest, b""
        for line in (rest, b"") if rest else (b"",):
            event = self._take(line)
            if event is not None:
                yield event

    def _lines(self, piece: bytes) -> list[bytes]:
        if not piece:
            return []
        if self._after_cr and piece.startswith(b"\n"):  # the second half of a CR LF
            piece = piece[1:]
        self._after_cr = piece.endswith(b"\r")
        text = self._rest + piece
        if not self._begun:
            if len(text) < len(_BOM) and _BOM.startswith(text):
                self._rest = text
                return []
            text, self._begun = text.removeprefix(_BOM), True
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, self._rest = text.split(b"\n")
        return lines

    def _take(self, line: bytes) -> SseEvent | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")  # a comment is a field without a name
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value)
        elif field == b"event":
            self._name = value
        return None

    def _dispatch(self) -> SseEvent | None:
        data, name = self._data, self._name
        self._data, self._size, self._name = [], 0, b""
        # a browser would be given an event without data; here it says nothing
        return SseEvent(b"\n".join(data), name) if any(data) else None
