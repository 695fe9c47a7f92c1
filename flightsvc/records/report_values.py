"""What a row says, if it has the shape that it should have; what has not is nothing."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

#: from so many points on a score is good, or fair
GOOD, FAIR = 80, 60


@dataclass(frozen=True, slots=True)
class Score:
    """A number from 0 to 100 as the page shows it.

    :param share: of the whole, in percent, for a bar's width.
    :param grade: ``good``, ``fair`` or ``poor``.
    """

    text: str
    share: str
    grade: str


def as_score(value: object, *, inverse: bool = False) -> Score | None:
    """A number from 0 to 100; None for anything else.

    :param inverse: whether less is better.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if not math.isfinite(number) or not 0 <= number <= 100:
        return None
    worth = 100 - number if inverse else number
    grade = "good" if worth >= GOOD else "fair" if worth >= FAIR else "poor"
    rounded = f"{number:.1f}".removesuffix(".0")
    return Score(rounded, f"{number:.1f}", grade)


def as_text(value: object) -> str:
    """A text without its outer white space; empty for anything else."""
    return value.strip() if isinstance(value, str) else ""


def isolated(text: str) -> str:
    """A text for the middle of a line that nothing else keeps apart: its direction ends with it
    (Unicode TR 9, FSI and PDI), and controls are there to be seen."""
    return f"\u2068{_BIDI.sub('', text).translate(_PICTURES)}\u2069"


#: what changes the direction of all that follows, or ends an isolation
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
#: each control as its picture, or as the sign for what cannot be shown
_PICTURES = {
    **{code: 0x2400 + code for code in range(0x20)},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
}


def as_texts(value: object) -> tuple[str, ...]:
    """The texts of a list; none for anything else."""
    several = value if isinstance(value, (list, tuple)) else ()
    return tuple(text for text in map(as_text, several) if text)


def natural(number: str) -> tuple[tuple[int, int, str], ...]:
    """An order in which 3 comes before 3-1, and 3-1 before 10."""
    parts = re.findall(r"[0-9]+|[^0-9]+", number[:100])
    return tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts)
