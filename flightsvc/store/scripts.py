"""The Lua scripts: where they lie, and what each is called with.

A :class:`Verb` names a script's KEYS and ARGV in order; a test holds it against the header of
the file, so that call site and script cannot drift apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


@dataclass(frozen=True)
class Verb:
    """One script and its parameters, in order.

    :param name: file name in ``lua/`` without its ending.
    :param keys: the short names of its KEYS.
    :param args: the names of its ARGV.
    :param each_keys: KEYS that repeat for each flight, after ``keys``.
    :param each_args: ARGV that repeat for each flight, after ``args``.
    """

    name: str
    keys: tuple[str, ...]
    args: tuple[str, ...]
    each_keys: tuple[str, ...] = ()
    each_args: tuple[str, ...] = ()

    def key_list(self, names: Mapping[str, str]) -> list[str]:
        """KEYS for one flight's names."""
        return [names[key] for key in self.keys]


def folder() -> Traversable:
    """The scripts' folder: inside the installed package, or in the checkout."""
    shipped = resources.files("flightsvc") / "lua"
    if shipped.is_dir():
        return shipped
    return Path(__file__).resolve().parents[2] / "lua"


@cache
def source(name: str) -> bytes:
    """The text of a script, as bytes."""
    return (folder() / f"{name}.lua").read_bytes()


@cache
def sha1(name: str) -> str:
    """The name by which Redis knows a script, in hex."""
    return hashlib.sha1(source(name), usedforsecurity=False).hexdigest()
