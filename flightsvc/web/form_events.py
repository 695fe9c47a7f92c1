"""A form (`multipart/form-data`) as a row of events: each part's beginning, then its content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flask import Request
from multipart import MultipartError, MultipartSegment, ParserLimitReached, PushMultipartParser
from werkzeug.http import parse_options_header

from flightsvc.errors import PayloadTooLarge, RequestError

#: how much of a body is read at a time, in bytes
PIECE = 64 * 1024
MAX_PARTS = 32
#: a line in the head of a part, in bytes
MAX_LINE = 8 * 1024


class Part(NamedTuple):
    """The beginning of a part.

    :param filename: None: it is a field.
    """

    name: str
    filename: str | None


#: parts, each followed by its content
Events = Iterator[Part | bytes]


def parsed(request: Request) -> Events:
    """A form that was read already, by Flask's own parser."""
    for name, text in request.form.items(multi=True):
        yield Part(name, None)
        yield text.encode("utf-8", "surrogatepass")
    for name, file in request.files.items(multi=True):
        yield Part(name, file.filename or "")
        file.stream.seek(0)
        while data := file.stream.read(PIECE):
            yield data


def parse(body: Iterator[bytes], boundary: bytes) -> Events:
    """A form as it comes.

    :raises PayloadTooLarge: it has too many parts, or too long heads.
    :raises RequestError: it is malformed.
    """
    parser = PushMultipartParser(boundary, max_header_size=MAX_LINE, max_segment_count=MAX_PARTS)
    try:
        for data in body:
            for event in filter(None, parser.parse(data)):
                is_part = isinstance(event, MultipartSegment)
                yield Part(event.name, _filename(event)) if is_part else event
        parser.close()
    except ParserLimitReached:
        raise PayloadTooLarge("The form has too many parts, or too long heads.") from None
    except MultipartError:
        raise RequestError("The form is malformed, or ends early.") from None


def _filename(part: MultipartSegment) -> str | None:
    """The file name of a part; None if it is a field. Some clients write it as RFC 5987 has it."""
    if part.filename is not None:
        return str(part.filename)
    return parse_options_header(part["Content-Disposition"])[1].get("filename")
