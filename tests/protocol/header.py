"""Reads the header of a script and says what is wrong with it, or with the body under it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from flightsvc.flight.state import Ack, Action
from flightsvc.store import Verb

TYPES = ("hash", "string", "stream", "sorted set", "integer")
WORDS = {word.value for word in (*Ack, *Action)}

_FLAGS = re.compile(r"#!lua flags=[a-z-]+(,[a-z-]+)*\n")
_FORM = re.compile(
    r"-- Purpose:  (?P<purpose>[^\n]+\.)\n"
    r"(?P<keys>(?:-- KEYS\[[^\n]+\n)+)"
    r"(?P<args>(?:-- ARGV\[[^\n]+\n)*)"
    r"(?P<returns>-- Returns   [^\n]+\n(?:--           [^\n]+\n)*)"
    r"-- Keeps     (?P<keeps>changes nothing|invariants? (?:\d+, )*\d+)\n\n"
)
_KEY = re.compile(
    rf"-- KEYS\[(\d+\+?)\] {{1,3}}(\w+) +({'|'.join(TYPES)})  +(\S.*?)(?: {{2,}}\|.*)?"
)
_ARG = re.compile(r"-- ARGV\[(\d+\+?)\] {1,3}(\w+) +(\S.*?)(?: {2,}\|.*)?")
_TIME_WORDS = {"ttl", "detect", "deadline", "wait", "timeout", "heartbeat", "lease", "before"}
_CALL = re.compile(r"redis\.p?call\(\s*'(\w+)'(?:, '(STREAM)')?(?:, ([^,)\s]+))?")
_FORBIDDEN = re.compile(r"^(KEYS|[HSZ]?SCAN|RANDOMKEY|EVAL\w*|FCALL\w*|SELECT|DBSIZE|MOVE|SORT)$")
_TIMES = re.compile(r"local function now_(?:ms|us)\(\)\n(?:  [^\n]*\n)+end\n")


@dataclass(frozen=True)
class Parameter:
    """One line of a header."""

    number: str
    name: str
    meaning: str
    type: str = ""


@dataclass(frozen=True)
class Header:
    """A script's header."""

    keys: tuple[Parameter, ...]
    args: tuple[Parameter, ...]
    returns: str
    keeps: str
    body: str


def read(text: str) -> Header | str:
    """The header of a script, or what keeps it from being one."""
    flags = _FLAGS.match(text)
    form = _FORM.match(text, flags.end() if flags else 0)
    if form is None:
        return "the header has not the fixed form"
    keys, args = [], []
    for line in form["keys"].splitlines():
        key = _KEY.fullmatch(line)
        if key is None:
            return f"no number, name, type and meaning: {line}"
        keys.append(Parameter(key[1], key[2], key[4], key[3]))
    for line in form["args"].splitlines():
        arg = _ARG.fullmatch(line)
        if arg is None:
            return f"no number, name and meaning: {line}"
        args.append(Parameter(arg[1], arg[2], arg[3]))
    return Header(tuple(keys), tuple(args), form["returns"], form["keeps"], text[form.end() :])


def faults(text: str, verb: Verb) -> list[str]:
    """Everything that is wrong with a script, against the verb that calls it."""
    header = read(text)
    if isinstance(header, str):
        return [header]
    body = re.sub(r"--[^\n]*", "", header.body)
    return [
        *_numbers("KEYS", header.keys, verb.keys, verb.each_keys),
        *_numbers("ARGV", header.args, verb.args, verb.each_args),
        *_units(header.args),
        *_keeps(header.keeps),
        *_returns(header.returns, body),
        *_uses("KEYS", header.keys, body),
        *_uses("ARGV", header.args, body),
        *_calls(header, body),
        *_time(body),
    ]


def _numbers(
    which: str, said: tuple[Parameter, ...], once: tuple[str, ...], each: tuple[str, ...]
) -> Iterator[str]:
    numbers = [str(n) for n in range(1, len(once) + 1)]
    numbers += [f"{len(once) + n}+" for n in range(1, len(each) + 1)]
    expected = list(zip(numbers, (*once, *each), strict=True))
    found = [(one.number, one.name) for one in said]
    if found != expected:
        yield f"{which} are {found}, but the verb has {expected}"


def _units(args: tuple[Parameter, ...]) -> Iterator[str]:
    for arg in args:
        if _TIME_WORDS & set(arg.name.split("_")) and not arg.name.endswith("_ms"):
            yield f"no unit in the name of {arg.name}"
        if arg.name == "size" and "bytes" not in arg.meaning:
            yield "no unit for size"


def _keeps(keeps: str) -> Iterator[str]:
    numbers = [int(number) for number in re.findall(r"\d+", keeps)]
    if numbers != sorted(set(numbers)) or any(not 1 <= number <= 11 for number in numbers):
        yield f"no such invariants, or not in order: {keeps}"
    if keeps.startswith("invariants") != (len(numbers) > 1):
        yield f"one invariant or several: {keeps}"


def _returns(returns: str, body: str) -> Iterator[str]:
    said = set(re.findall(r"\b[A-Z]{2}[A-Z_]*\b", returns))
    written = set(re.findall(r"'([A-Z_]+)'", body))
    given = set(re.findall(r"return \{?'([A-Z_]+)'", body))
    for word in sorted(said - written):
        yield f"Returns names {word}, the body never does"
    for word in sorted(given - said):
        yield f"the body returns {word}, Returns does not name it"
    for word in sorted(said - WORDS):
        yield f"Returns names {word}, which is neither an Ack nor an Action"


def _uses(which: str, said: tuple[Parameter, ...], body: str) -> Iterator[str]:
    once = {one.number for one in said if not one.number.endswith("+")}
    used = set(re.findall(rf"{which}\[(\d+)\]", body))
    for number in sorted(once - used):
        yield f"{which}[{number}] is never used"
    for number in sorted(used - once):
        yield f"{which}[{number}] is not in the header"


def _calls(header: Header, body: str) -> Iterator[str]:
    each = {key.name for key in header.keys if key.number.endswith("+")}
    if ".." in body or "table.concat" in body:
        yield "text is put together: a key could be built"
    if len(_CALL.findall(body)) != len(re.findall(r"redis\.p?call\(", body)):
        yield "a command that is no plain word"
    for command, _, key in _CALL.findall(body):
        if _FORBIDDEN.match(command):
            yield f"{command} is not allowed"
        elif command != "TIME" and not re.fullmatch(r"KEYS\[\d+\]", key) and key not in each:
            yield f"{command} on {key}, which is no key that was given"


def _time(body: str) -> Iterator[str]:
    outside = _TIMES.sub("", body)
    if "'TIME'" in outside or re.search(r"\bos\.", body):
        yield "time that does not come from now_ms or now_us"
    if len(_TIMES.findall(body)) > 1:
        yield "two functions that ask for the time"
