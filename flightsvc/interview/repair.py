"""Broken JSON in a model's text: where it ends, and what it says.

The library json-repair makes something of almost any text: it closes what was cut, lets the later
of two equal names win, and takes any word for a string. Here it may mend the form only: quotes,
commas, names without quotes, comments, and the last brace. So the text is looked over first, and
what the library says is held against it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import json_repair

#: Longest object that is repaired, in characters: the library takes about 4 µs for each.
MAX_REPAIR = 30_000
#: Most characters that are looked over in one text.
MAX_SCANNED = 4 * MAX_REPAIR

_TOKEN = re.compile(
    r"""
      (?P<space>\s++)
    | (?P<comment>//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)
    | (?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+"|“[^”]*+”)
    | (?P<mark>[{}\[\],:])
    | (?P<endless>["“]|/\*)
    | (?P<word>[^\s"“{}\[\],:/]++|/)
    """,
    re.VERBOSE | re.DOTALL,
)
#: a string in single quotes ends where something follows that may follow a string
_SINGLE = re.compile(r"'(?:[^'\\]|\\.|'(?!\s*+(?:[,:}\]]|\Z)))*+'", re.DOTALL)
_PLAIN_VALUE = re.compile(r"(?i:true|false|null|none)|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NAME = re.compile(r"""[{,"'“”‘’]\s*+([^\s"'“”‘’{}\[\],:][^"'“”‘’{}\[\],:]{0,60}?)["'“”‘’]?\s*+:""")
_CLOSERS = {"}": "{", "]": "["}


class NotRepairable(Exception):
    """What it means cannot be known."""


@dataclass(frozen=True, slots=True)
class Region:
    """An object in a text.

    :param text: from its opening brace to its end.
    :param end: where that is in the whole text.
    :param closed: its last brace is there; without it, all that is there is whole.
    :param readable: nothing in it forbids a repair.
    """

    text: str
    end: int
    closed: bool
    readable: bool

    def names(self) -> Counter[str]:
        """What looks like a name with a value, and how often."""
        return Counter(found[1].strip() for found in _NAME.finditer(self.text))


@dataclass(slots=True)
class _Place:
    """Where a scan stands.

    :param open: the brackets that are open.
    :param last: what came last: a mark, ``name`` or ``value``.
    :param whole: what came last cannot have been cut.
    :param stray: a word came behind a value. The next string, or a colon, explains it: a quote
        was not escaped, or a comma forgotten.
    :param readable: so far nothing forbids a repair.
    """

    open: list[str] = field(default_factory=list)
    last: str = ""
    whole: bool = True
    stray: bool = False
    readable: bool = True

    def wants_value(self) -> bool:
        in_array = self.open[-1] == "["
        return self.last == ":" or (in_array and self.last in ("[", ","))

    def wants_name(self) -> bool:
        return self.open[-1] == "{" and self.last in ("{", ",")


def region_at(text: str, start: int) -> Region:
    """The object that begins at a brace, as far as it goes; at most :data:`MAX_REPAIR` characters
    are looked at."""
    place, at = _Place(), start
    limit = min(len(text), start + MAX_REPAIR)
    while at < limit:
        try:
            token = _token(place, text, at, limit)
            _step(place, token, text)
        except NotRepairable:
            return Region(text[start:limit], limit, closed=False, readable=False)
        at = token.end()
        if not place.open:
            return Region(text[start:at], at, closed=True, readable=place.readable)
    is_all_there = place.open == ["{"] and place.last == "value" and limit == len(text)
    readable = is_all_there and place.whole and not place.stray and place.readable
    return Region(text[start:limit], limit, closed=False, readable=readable)


def _token(place: _Place, text: str, at: int, limit: int) -> re.Match[str]:
    """The next token.

    :raises NotRepairable: a string or comment has no end.
    """
    begins_string = text[at] == "'" and (place.wants_value() or place.wants_name())
    token = (_SINGLE if begins_string else _TOKEN).match(text, at, limit)
    if token is None or token.lastgroup == "endless":
        raise NotRepairable("a string or comment without an end")
    return token


def _step(place: _Place, token: re.Match[str], text: str) -> None:
    """Take one token.

    :raises NotRepairable: where the object ends cannot be known.
    """
    kind, said = token.lastgroup or "string", token[0]
    if kind == "mark":
        _mark(place, said)
    elif kind == "string":
        place.last = "name" if place.wants_name() else "value"
        place.whole, place.stray = True, False
    elif kind == "word" and place.last == "value":
        place.stray = True
    elif kind == "word":
        if place.wants_value() and not _PLAIN_VALUE.fullmatch(said):
            place.readable = False
        place.last = "name" if place.wants_name() else "value"
        place.whole = said[-1].isalpha() or text[token.end() : token.end() + 1].isspace()


def _mark(place: _Place, said: str) -> None:
    if place.stray and said != ":":
        place.readable = False
    place.stray = False
    if said in "{[":
        place.open.append(said)
        place.last = said
    elif said in _CLOSERS:
        if place.open.pop() != _CLOSERS[said]:
            raise NotRepairable("brackets that cross")
        place.last, place.whole = "value", True
    else:
        place.last = said


def repaired(region: Region, fields: Collection[str]) -> dict[str, Any]:
    """What a broken object says.

    :param fields: names that it may have; each that its text has must come out, as often.
    :raises NotRepairable: it cannot be known.
    """
    if not region.readable:
        raise NotRepairable("not readable")
    try:
        found = json_repair.loads(
            region.text if region.closed else region.text + "}", skip_json_loads=True, strict=True
        )
    except (ValueError, RecursionError):
        raise NotRepairable("no JSON") from None
    if not isinstance(found, dict):
        raise NotRepairable("no object")
    come_out = Counter(_names_of(found))
    written = region.names()
    if any(written[name] != come_out[name] for name in {*come_out, *fields}):
        raise NotRepairable("a name got lost, or stands there twice")
    if not region.closed and not set(fields) <= set(found):
        raise NotRepairable("cut")
    return found


def _names_of(value: object) -> Iterator[str]:
    """Every name in a value, once for each object that has it.

    :raises NotRepairable: a number in it is none.
    """
    waiting: list[object] = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield from (str(name).strip() for name in each)
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, float) and not math.isfinite(each):
            raise NotRepairable("not a number")
