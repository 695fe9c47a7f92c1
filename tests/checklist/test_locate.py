"""The lines that are told are those where the values stand."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from flightsvc.checklist.document import shipped
from flightsvc.checklist.locate import Path, lines_of

TEXT = """\
# comment with [brackets] and "quotes
top = 1

[codes.A]  # after a header
plain = "a # no comment"
'quo.ted' = 'x'
"esc\\u0041ped" = 2
dotted.inner . deep = true
many = [
  1, # one
  [2,
   3],
  { x = 1, "y" = [4] },
]
date = 1979-05-27 07:32:00
long = \"\"\"
[not.a.table]
key = 1 \\\"\"\" still ""\"\"\"
raw = '''
[neither]
'it' ''
'''
empty = ""
[[match]]
to = "A"
[[match]]
[match.inner]
x = 1
[[match.deeper]]
y = 1
[[match.deeper]]
y = 2
"""


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    """Every table, key and entry of what Python's parser read."""
    if at:
        yield at
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*at, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from paths(inner, (*at, number))


def test_each_value_is_found_on_its_line() -> None:
    found = lines_of(TEXT)
    lines = TEXT.split("\n")

    def line(text: str, nth: int = 0) -> int:
        return [number for number, each in enumerate(lines, 1) if each.startswith(text)][nth]

    codes: Path = ("codes", "A")
    assert found["top",] == line("top")
    assert found[codes] == line("[codes.A]")
    assert found[(*codes, "quo.ted")] == line("'quo.ted'")
    assert found[(*codes, "escAped")] == line('"esc')
    assert found[(*codes, "dotted", "inner", "deep")] == line("dotted")
    assert found[(*codes, "many", 1, 1)] == line("   3]")
    assert found[(*codes, "many", 2, "y", 0)] == line("  { x")
    assert found[(*codes, "raw")] == line("raw")
    assert found[(*codes, "empty")] == line("empty")
    assert found["match", 1] == line("[[match]]", 1)
    assert found["match", 1, "inner", "x"] == line("x = 1")
    assert found["match", 1, "deeper", 1, "y"] == line("y = 2")


def test_nothing_is_left_out_or_made_up() -> None:
    assert set(lines_of(TEXT)) == set(paths(tomllib.loads(TEXT)))
    base = shipped()
    assert set(base.lines) == set(paths(base.tree))


def test_windows_line_ends_count_once() -> None:
    assert lines_of("a = 1\r\n\r\n[b]\r\nc = '''\r\n\r\n'''\r\nd = 2\r\n")["b", "d"] == 7


KEYS = st.text(min_size=1, max_size=8).filter(lambda text: text.encode("utf-8", "ignore") != b"")
SCALARS = st.one_of(
    st.integers(-(10**9), 10**9),
    st.booleans(),
    st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=20),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


def quoted(text: str) -> str:
    return '"' + "".join(f"\\U{ord(sign):08X}" for sign in text) + '"'


def written(value: Any, draw: st.DataObject) -> str:
    """A value as TOML, with blanks and comments where they may stand."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        gap = draw.draw(st.sampled_from(["", " ", "\n", ' # ], "\n\n']))
        return f"[{gap}" + f",{gap}".join(written(each, draw) for each in value) + f"{gap}]"
    pairs = (f"{quoted(key)} = {written(each, draw)}" for key, each in value.items())
    return "{ " + ", ".join(pairs) + " }"


@settings(max_examples=50)
@given(st.dictionaries(KEYS, VALUES, max_size=5), st.data())
def test_whatever_the_parser_reads_is_located(tree: dict[str, Any], data: st.DataObject) -> None:
    tree = {
        key: value
        for key, value in tree.items()
        if not any("\ud800" <= sign <= "\udfff" for sign in str((key, value)))
    }
    text, expected = "", {}
    for key, value in tree.items():
        text += data.draw(st.sampled_from(["", "\n", "# = [\n", "  "]))
        expected[key,] = text.count("\n") + 1
        text += f"{quoted(key)} = {written(value, data)}\n"
    found = lines_of(text)
    read = tomllib.loads(text)
    assert set(found) == set(paths(read))
    assert {path: found[path] for path in expected} == expected
