"""What a dashboard is, whoever draws it: panels of named series with units and colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Draw = Literal["lines", "stacked", "steps"]

#: colour by meaning: hex for light paper, hex for a dark one
COLOURS: dict[str, tuple[str, str]] = {
    "blue": ("0969da", "58a6ff"),
    "green": ("1a7f37", "3fb950"),
    "orange": ("bc4c00", "f0883e"),
    "red": ("cf222e", "ff7b72"),
    "purple": ("8250df", "bc8cff"),
    "teal": ("0a7d91", "39c5cf"),
    "yellow": ("9a6700", "d29922"),
    "pink": ("bf3989", "f778ba"),
    "grey": ("57606a", "8b949e"),
}

#: roles of answers, in the order of their cost, and their colours
ROLES = (
    ("owner", "orange"),
    ("follower", "blue"),
    ("replay", "teal"),
    ("l1", "green"),
    ("local", "grey"),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One target; its series take the name ``name``, or name themselves.

    :param target: a Graphite expression.
    :param name: legend; empty: the expression names its series.
    :param colour: of :data:`COLOURS`; empty: the next one.
    """

    target: str
    name: str = ""
    colour: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph.

    :param title: what is seen.
    :param unit: of the vertical axis, as a reader says it.
    :param says: how to read it, in a sentence.
    :param lowest: where the axis begins; None: where the values do.
    :param highest: where the axis ends; None: where the values do.
    """

    title: str
    unit: str
    says: str
    lines: tuple[Line, ...]
    draw: Draw = "lines"
    lowest: float | None = 0
    highest: float | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard.

    :param name: in addresses and file names.
    :param title: for people.
    """

    name: str
    title: str
    panels: tuple[Panel, ...]
