"""What may stand in a log: places and kinds, never what somebody wrote."""

from __future__ import annotations

import traceback


def stack_of(error: BaseException) -> str:
    """Types and places of an error and of its causes, outermost first.

    Not its message: a message may quote what it stumbled over, and that may be an answer.
    """
    parts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        kind = type(current)
        frames = "".join(traceback.format_tb(current.__traceback__))
        parts.append(f"{kind.__module__}.{kind.__qualname__}\n{frames}")
        current = current.__cause__ or current.__context__
    return "caused by ".join(parts)
