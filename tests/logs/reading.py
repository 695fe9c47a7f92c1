"""Reading log lines as a program would, and holding them against the schema."""

from __future__ import annotations

import json
import logging
from typing import Any, Self

from flightsvc.logs.fields import EVENTS, FIELDS, GOLDEN

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "list": (list,),
}


def faults(line: dict[str, Any]) -> list[str]:
    """What of a decoded line is not as the schema has it; empty if it fits."""
    event = line.get("event")
    if event not in EVENTS:
        return [f"event is {event!r}"]
    known = {one.name: one for one in FIELDS if event in one.events}
    found = [f"{name} does not belong here" for name in line.keys() - known.keys()]
    must = {"time", "level", "event", "pid", "worker"}
    must |= set(GOLDEN) if event in ("request", "failure") else set()
    found += [f"{name} is missing" for name in must - line.keys()]
    for name in line.keys() & known.keys():
        value = line[name]
        if value is not None and type(value) not in TYPES[known[name].kind]:
            found.append(f"{name} is {value!r}")
    return found


def read(text: str, event: str = "") -> list[dict[str, Any]]:
    """The lines of a log, or those of one kind; each fits the schema."""
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        assert faults(line) == [], line
    return [line for line in lines if line["event"] == (event or line["event"])]


class Written(logging.Handler):
    """What a formatter makes of the lines that are logged while it is attached."""

    def __init__(self, formatter: logging.Formatter, name: str = "flightsvc") -> None:
        super().__init__()
        self.setFormatter(formatter)
        self.lines: list[str] = []
        self._logger = logging.getLogger(name)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    def __enter__(self) -> Self:
        self._former = (self._logger.level, self._logger.propagate)
        self._logger.setLevel(logging.DEBUG)
        self._logger.propagate = False  # pytest-xdist cannot hand on what it would capture
        self._logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        level, self._logger.propagate = self._former
        self._logger.setLevel(level)

    @property
    def only(self) -> str:
        (line,) = self.lines
        return line
