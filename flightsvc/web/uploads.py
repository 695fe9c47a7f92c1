"""Reading a file from a form (`multipart/form-data`, RFC 7578), straight into the store.

Nothing of it is held in memory but the piece that just came, and nothing is written anywhere but
into the store: there it is whole, or not at all. What its sender calls it is kept as data and is
never part of a path.
"""

from __future__ import annotations

import io
import math
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import gevent
from flask import Request
from werkzeug.exceptions import UnsupportedMediaType

from flightsvc.errors import BodyTooSlow, InvalidInput, PayloadTooLarge, RequestError
from flightsvc.files import FileStore, StoredFile
from flightsvc.settings import Settings
from flightsvc.web.body import already_read
from flightsvc.web.form_events import PIECE, Events, Part, parse, parsed

#: what a form may hold beside its file: all fields and the heads of all parts, in bytes
MAX_REST = 64 * 1024
#: Longest file name that is kept, in characters.
MAX_NAME = 255
#: a file is given the time limit of a body once for each of these, in bytes
TIME_UNIT = 1024 * 1024


class Upload(NamedTuple):
    """A file and the form that it came in.

    :param name: what its sender calls it, for people to read: it can be anything, and empty.
    :param form: the other fields.
    """

    stored: StoredFile
    name: str
    form: dict[str, str]


def read_upload(
    request: Request,
    settings: Settings,
    store: FileStore,
    *,
    limit: int,
    field: str = "file",
    fields: Collection[str] = (),
) -> Upload:
    """The file of a request, stored; what is refused leaves nothing behind.

    :param limit: its largest size in bytes. The time for the body grows with it.
    :param field: the name of the file's field.
    :param fields: names of the others that there may be.
    :raises BodyTooSlow: the body did not come in time.
    :raises UnsupportedMediaType: it is not a form with a file, or compressed.
    :raises PayloadTooLarge: the file or the form is too large, also if it did not say so.
    :raises RequestError: it was cut, or is malformed.
    :raises InvalidInput: there is no file, or a field is unknown or there twice.
    """
    boundary = _boundary(request)
    form = _Form(field, fields)
    pieces = form.file(_events(request, boundary, limit))
    timeout_s = settings.body_timeout_ms / 1000 * max(1, math.ceil(limit / TIME_UNIT))
    timer = gevent.Timeout(timeout_s)
    try:
        with timer:
            stored = store.put(pieces, limit=limit)
    except gevent.Timeout as expired:
        if expired is not timer:
            raise
        raise BodyTooSlow() from None
    return Upload(stored, form.name, form.values)


def _events(request: Request, boundary: bytes, limit: int) -> Events:
    """A form as it comes, or as a hook of the app that mounts us has read it already."""
    if "files" in request.__dict__:  # to ask for it would read it
        return parsed(request)
    return parse(_body(request, limit), boundary)


def _boundary(request: Request) -> bytes:
    if request.environ.get("HTTP_CONTENT_ENCODING", "identity").strip().lower() != "identity":
        raise UnsupportedMediaType("Send the body uncompressed.")
    boundary = request.mimetype_params.get("boundary", "")
    if request.mimetype != "multipart/form-data" or not 1 <= len(boundary) <= 70:
        raise UnsupportedMediaType("Send the file in a form: `Content-Type: multipart/form-data`.")
    try:
        return boundary.encode("ascii")
    except UnicodeEncodeError:
        raise UnsupportedMediaType("The form's boundary is not ASCII.") from None


def _body(request: Request, limit: int) -> Iterator[bytes]:
    """The body in pieces, to its end.

    :raises PayloadTooLarge: it is larger than a form with such a file can be.
    :raises RequestError: it was cut, or its chunks are malformed.
    """
    most = limit + MAX_REST
    said_to_be = f"The file may have at most {limit} bytes."
    theirs = request.max_content_length  # of the app that mounts us
    if theirs is not None and theirs < most:
        most, said_to_be = theirs, f"The form may have at most {theirs} bytes."
    environ = request.environ
    said = environ.get("CONTENT_LENGTH") or ""
    length = int(said) if said.isdecimal() else None
    if length is not None and length > most:
        raise PayloadTooLarge(said_to_be)
    whole = already_read(request)
    if whole is not None:
        return _pieces(io.BytesIO(whole), None, most, said_to_be)
    if length is None and "wsgi.input_terminated" not in environ:
        length = 0
    return _pieces(environ["wsgi.input"], length, most, said_to_be)


def _pieces(stream: Any, length: int | None, most: int, said_to_be: str) -> Iterator[bytes]:
    came = 0
    while length is None or came < length:
        try:
            data: bytes = stream.read(PIECE if length is None else min(PIECE, length - came))
        except Exception:  # a bad chunk, a connection that is gone: each server has its own classes
            raise RequestError(_CUT) from None
        came += len(data)
        if came > most:
            raise PayloadTooLarge(said_to_be)
        if not data:
            break
        yield data
    if length is not None and came < length:
        raise RequestError(_CUT)


_CUT = "The body ends early, or its chunks are malformed."


class _Form:
    """A form while it comes: its file is handed on piece by piece, its fields are kept.

    :param field: the name of the file's field; ``fields`` those of others.
    """

    def __init__(self, field: str, fields: Collection[str]) -> None:
        self._field = field
        self._fields = fields
        self._has_file = False
        self._said: dict[str, bytearray] = {}
        self._rest = 0
        self.name = ""
        self.values: dict[str, str] = {}

    def file(self, events: Events) -> Iterator[bytes]:
        """The file's content; ends when the whole form is there and found to be right.

        :raises InvalidInput: see :func:`read_upload`, and the other errors too.
        """
        into: bytearray | None = None  # None: the file
        size = 0
        for event in events:
            if isinstance(event, Part):
                into = self._part(event)
            elif into is not None:
                into += event
                self._count(len(event))
            else:
                size += len(event)
                yield event
        if not self._has_file or not (size or self.name):  # a browser sends an empty part for none
            raise InvalidInput(f"{self._field}: send a file in this field.")
        self.values = {name: _text(name, value) for name, value in self._said.items()}

    def _part(self, part: Part) -> bytearray | None:
        """Where a part's content goes."""
        name, filename = part
        if not name:
            raise InvalidInput("A field of the form has no name: name each one.")
        if filename is None and name == self._field:
            raise InvalidInput(f"{name}: send it as a file, with a filename.")
        if filename is not None and name == self._field:
            if self._has_file:
                raise InvalidInput(f"{name}: send one file.")
            self._has_file = True
            self.name = _name(filename)
            return None
        if filename is not None or name not in self._fields:
            raise InvalidInput(f"{_name(name)[:64]}: there is no such field in this form.")
        if name in self._said:
            raise InvalidInput(f"{name}: send this field once.")
        return self._said.setdefault(name, bytearray())

    def _count(self, size: int) -> None:
        self._rest += size
        if self._rest > MAX_REST:
            raise PayloadTooLarge(f"The form's fields may have at most {MAX_REST} bytes.")


def _name(said: str) -> str:
    """A file name for people: one line, no signs that change how the rest is read."""
    return "".join(char for char in said if char.isprintable())[:MAX_NAME]


def _text(name: str, value: bytes | bytearray) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{name}: send text in UTF-8.") from None
