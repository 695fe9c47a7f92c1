"""A checklist file as it was read: its values, and the line of each."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any

from flightsvc.checklist.locate import Path, lines_of
from flightsvc.errors import SettingsError

#: what the shipped list is called in messages
SHIPPED = "flightsvc/checklist/checklist.toml"
CODE = "CHECKLIST_INVALID"

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_NAMES = re.compile(r"\('.*\)")
_TWICE = re.compile(r"^Cannot (declare .* twice|overwrite a value|redefine|mutate|use)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Document:
    """One file.

    :param file: its name, as the user gave it.
    :param tree: its tables and values.
    :param lines: the line of each.
    """

    file: str
    tree: Mapping[str, Any]
    lines: Mapping[Path, int]


def shipped() -> Document:
    """The list that comes with the package."""
    text = files("flightsvc.checklist").joinpath("checklist.toml").read_text(encoding="utf-8")
    return parse(text, SHIPPED)


def read(file: str) -> Document:
    """A user's file.

    :raises SettingsError: there is none, it cannot be read, or it is no TOML; names file and line.
    """
    path = FilePath(file).expanduser()
    try:
        if not path.is_file():
            raise _refused(f"{file} is no file: correct or unset the name of the checklist.")
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise _refused(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise _refused(f"{file}:{line}: is not UTF-8: save the file so.") from None
    return parse(text.removeprefix("\ufeff"), file)


def parse(text: str, file: str) -> Document:
    """
    :param file: what the text is called in messages.
    :raises SettingsError: it is no TOML; names the line.
    """
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _refused(f"{file}:{_fault(str(error), text)}") from None
    except RecursionError:
        raise _refused(f"{file}: is nested too deeply.") from None
    return Document(file, tree, lines_of(text))


def _fault(said: str, text: str) -> str:
    """Line and sentence for what the parser says."""
    found = _PLACE.search(said)
    last = str(text.rstrip().count("\n") + 1)
    line, column = (found[1] or last, found[2]) if found else (last, None)
    reason = said[: found.start()] if found else said
    if _TWICE.match(reason):
        found = _NAMES.search(reason)
        what = ".".join(ast.literal_eval(found[0])) if found else f"a name ({reason})"
        return f"{line}: {what} stands twice in the file: keep one of the two."
    if column is None:
        return f"{line}: the file ends too early ({reason}): complete it."
    return f"{line}: is no TOML, column {column} ({reason}): correct it."


def _refused(problem: str) -> SettingsError:
    return SettingsError(problem, code=CODE)
