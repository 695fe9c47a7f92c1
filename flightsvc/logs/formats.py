"""Log records as lines: JSON for programs, text for a terminal.

Both take any record of the ``logging`` module. What a line of ours says stands in attributes of
the record (``event`` and the fields of its kind), so that a host app's own formatters see it too.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from typing import Any

from pydantic_core import to_json

from flightsvc.logs.fields import ALERT, LOG, MESSAGE_LENGTH, OWN, Event
from flightsvc.logs.stack import stack_of

#: environment of a worker: its number, the lowest that was free
WORKER_SLOT = "_FLIGHTSVC_WORKER_SLOT"
#: whose errors may quote a prompt or an answer
OURS = "flightsvc"

_ENCODER = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), default=str)
# what could move the cursor, colour the screen or begin a line of its own
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class JsonFormatter(logging.Formatter):
    """One JSON object a line, in ASCII: no text of anybody's can begin a line or end one.

    :param content: whether messages of errors, which may quote a prompt or an answer, are logged.
    """

    def __init__(self, *, content: bool = False) -> None:
        super().__init__()
        self._content = content

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        said = record.__dict__
        event = event_of(record)
        line: dict[str, Any] = {
            "time": _utc(record.created),
            "level": record.levelname.lower(),
            "event": event,
        }
        if event == LOG:
            line["logger"] = record.name
        if event in (LOG, ALERT):
            line["message"] = record.getMessage()[:MESSAGE_LENGTH]
        line.update({name: said[name] for name in OWN[event] if name in said})
        if event == LOG or "stack" in said:
            stack = stack_text(record, content=self._content)
            if stack:
                line["stack"] = stack
        line["worker"] = os.environ.get(WORKER_SLOT)
        line["pid"] = record.process
        return _json(line)


class TextFormatter(logging.Formatter):
    """A line as gunicorn writes its own; what follows in further lines is indented, so that it
    cannot pass for a line.

    :param content: see :class:`JsonFormatter`.
    """

    def __init__(self, *, content: bool = False) -> None:
        super().__init__()
        self._content = content

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        when = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(record.created))
        said = record.getMessage()
        stack = stack_text(record, content=self._content)
        if stack:
            said = f"{said}\n{stack}"
        said = _CONTROL.sub(lambda found: repr(found[0])[1:-1], said.rstrip("\n"))
        return f"[{when}] [{record.process}] [{record.levelname}] " + said.replace("\n", "\n  ")


def event_of(record: logging.LogRecord) -> Event:
    """The kind of line that a record is."""
    event = record.__dict__.get("event")
    return event if event in OWN and _ours(record) else LOG


def stack_text(record: logging.LogRecord, *, content: bool) -> str:
    """The stack of a record: its own field, or that of the exception that it was logged with.

    Exceptions of this package's loggers without their messages, unless ``content``; others are
    gunicorn's or the host app's, and as they are.
    """
    if event_of(record) != LOG:
        return str(record.__dict__.get("stack") or "")
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return str(record.stack_info or "")
    return stack_of(error, content=content or not _ours(record))


def _ours(record: logging.LogRecord) -> bool:
    return record.name == OURS or record.name.startswith(OURS + ".")


def _json(line: dict[str, Any]) -> str:
    """As :data:`_ENCODER` has it; nearly all lines are ASCII, and pydantic's is the faster one."""
    try:
        text = to_json(line)
        if text.isascii() and b"\x7f" not in text:
            return text.decode("ascii")
    except ValueError:  # half of a surrogate pair, or no JSON
        pass
    return _ENCODER.encode(line)


_second: tuple[int, str] = (0, "")


def _utc(created: float) -> str:
    """Unix time in s as RFC 3339 in UTC; the text of a second is made once."""
    global _second
    whole = int(created)
    second, text = _second
    if second != whole:
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
        _second = (whole, text)
    return f"{text}.{int((created - whole) * 1000):03d}Z"
