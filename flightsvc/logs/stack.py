"""Where an error came from: types and places, never what somebody wrote."""

from __future__ import annotations

import traceback

#: longest stack in a log line, in characters; more loses its middle
STACK_LENGTH = 8_000


def stack_of(error: BaseException, *, content: bool = False) -> str:
    """Types and places of an error and of its causes, outermost first.

    :param content: with the messages too. They may quote what the error stumbled over, and that
        may be an answer.
    """
    parts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        kind = type(current)
        said = f": {current}" if content else ""
        frames = "".join(traceback.format_tb(current.__traceback__))
        parts.append(f"{kind.__module__}.{kind.__qualname__}{said}\n{frames}")
        current = current.__cause__ or current.__context__
    return _bounded("caused by ".join(parts))


def _bounded(stack: str) -> str:
    if len(stack) <= STACK_LENGTH:
        return stack
    half = STACK_LENGTH // 2
    return f"{stack[:half]}\n  …\n{stack[-half:]}"
