"""Where each value of a TOML text stands.

Python's parser says what a text holds, but not where. This one says only where: it follows a
text that the parser has accepted, so it need not look for mistakes.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right

#: names of tables and keys, and numbers within arrays
Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_KEY = re.compile(r"""[ \t]*([A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')[ \t]*""")
_STRING = re.compile(
    r'''"""(?:\\.|[^\\])*?"""(?:"{0,2})|\'\'\'.*?\'\'\'(?:'{0,2})|"(?:\\.|[^"\\])*"|'[^']*\'''',
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]+")


def lines_of(text: str) -> dict[Path, int]:
    """The line (from 1) of every table, key and array entry of a valid TOML text."""
    return _Walk(text.replace("\r\n", "\n")).run()


class _Walk:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self._lines: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}  # entries so far of each array of tables

    def run(self) -> dict[Path, int]:
        table: Path = ()
        while self._skip():
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)
        return self._lines

    def _header(self) -> Path:
        """``[a.b]`` or ``[[a.b]]``; returns the table that follows."""
        begin = self._at
        is_array = self._text.startswith("[[", begin)
        self._at += 2 if is_array else 1
        path: Path = ()
        keys = self._keys()
        for key in keys[:-1]:
            path = self._newest((*path, key))
            self._note(path, begin)
        path = (*path, keys[-1])
        self._note(path, begin)
        if is_array:
            self._counts[path] = self._counts.get(path, 0) + 1
            path = self._newest(path)
            self._note(path, begin)
        self._at += 2 if is_array else 1
        return path

    def _newest(self, path: Path) -> Path:
        """Within an array of tables: its last entry."""
        return (*path, self._counts[path] - 1) if path in self._counts else path

    def _pair(self, table: Path) -> None:
        begin = self._at
        path = table
        for key in self._keys():
            path = (*path, key)
            self._note(path, begin)
        self._at += 1  # "="
        self._value(path)

    def _value(self, path: Path) -> None:
        self._skip()
        first = self._text[self._at]
        if first == "[":
            self._array(path)
        elif first == "{":
            self._inline(path)
        else:
            found = (_STRING if first in "\"'" else _SCALAR).match(self._text, self._at)
            assert found is not None, "the text was parsed before"
            self._at = found.end()

    def _array(self, path: Path) -> None:
        self._at += 1
        number = 0
        while self._skip() and self._text[self._at] != "]":
            self._note((*path, number), self._at)
            self._value((*path, number))
            number += 1
            self._comma()
        self._at += 1

    def _inline(self, path: Path) -> None:
        self._at += 1
        while self._skip() and self._text[self._at] != "}":
            self._pair(path)
            self._comma()
        self._at += 1

    def _comma(self) -> None:
        if self._skip() and self._text[self._at] == ",":
            self._at += 1

    def _keys(self) -> list[str]:
        """The parts of a dotted key."""
        keys = []
        while True:
            found = _KEY.match(self._text, self._at)
            assert found is not None, "the text was parsed before"
            keys.append(_plain(found[1]))
            self._at = found.end()
            if not self._text.startswith(".", self._at):
                return keys
            self._at += 1

    def _skip(self) -> bool:
        """Go to what is no blank, line end or comment; False at the end of the text."""
        found = _BLANK.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        return self._at < len(self._text)

    def _note(self, path: Path, at: int) -> None:
        self._lines.setdefault(path, bisect_right(self._starts, at))


def _plain(key: str) -> str:
    """A key without its quotes."""
    if key[0] not in "\"'":
        return key
    name: str = tomllib.loads(f"key = {key}")["key"]
    return name
