"""JSON that comes back as it went in, or a clear refusal.

Python's encoder turns keys like ``1`` and ``None`` into text, writes NaN, and follows a small
structure that refers to itself many times until the memory is full. :func:`to_json` looks first.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from flightsvc.errors import ResultRejected

#: Deepest nesting of lists and dicts; Python's decoder gives up not far above.
MAX_DEPTH = 200
LIMIT_SETTING = "FLIGHTSVC_MAX_RESULT_BYTES"

_UNIT_TYPES = frozenset({bool, int, type(None)})
_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
).encode


def to_json(value: object, max_bytes: int) -> bytes:
    """A value as compact UTF-8 JSON.

    Tuples become lists, and subclasses (enums of text, ordered dicts) their plain types.

    :param max_bytes: where to stop, as the result cannot be shorter; a result may still be longer.
    :raises ResultRejected: ``RESULT_NOT_SERIALIZABLE`` or ``RESULT_TOO_LARGE``; the message never
        holds the value.
    """
    _check(value, max_bytes)
    try:
        return _encode(value).encode("utf-8")
    except UnicodeEncodeError:  # no "from": these errors carry the value
        raise _not_json("holds text with half of a surrogate pair") from None
    except ValueError:
        raise _not_json("holds an int of too many digits") from None


def too_large(value: object, size: str, max_bytes: int) -> ResultRejected:
    """The refusal of a value that takes ``size`` bytes (a number, or words with a number)."""
    return ResultRejected(
        f"the call's result ({type(value).__name__}) takes {size} bytes, and at most "
        f"{max_bytes} are stored: return less, or raise {LIMIT_SETTING}",
        code="RESULT_TOO_LARGE",
    )


def _check(value: object, max_bytes: int) -> None:
    """Walk the value with a stack of its own, counting the fewest bytes it can take."""
    least = 0
    stack: list[Iterator[object]] = [iter((value,))]
    while stack:
        for child in stack[-1]:
            kind = type(child)
            if kind is str:
                least += len(child) + 2  # type: ignore[arg-type]
            elif kind in _UNIT_TYPES:
                least += 1
            elif isinstance(child, (dict, list, tuple)):
                least += 2
                if isinstance(child, dict):
                    least += _key_size(child)
                stack.append(iter(child.values() if isinstance(child, dict) else child))
                break
            else:
                least += _rare_size(child)
        else:
            stack.pop()
        if least > max_bytes:
            raise too_large(value, f"over {max_bytes}", max_bytes)
        if len(stack) > MAX_DEPTH + 1:
            raise _not_json(f"is nested deeper than {MAX_DEPTH} levels, or contains itself")


def _key_size(value: dict[object, object]) -> int:
    size = 0
    for key in value:
        if not isinstance(key, str):
            raise _not_json(f"holds a dict with a key of type {type(key).__name__}")
        size += len(key) + 3
    return size


def _rare_size(value: object) -> int:
    """The fewest bytes of a float, or of a subclass of a plain type."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _not_json("holds NaN or Infinity, which JSON does not have")
        return 1
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, int):
        return 1
    raise _not_json(f"holds a {type(value).__name__}")


def _not_json(what: str) -> ResultRejected:
    return ResultRejected(
        f"the call's result {what}: return bytes, or JSON made of dict (with text as keys), list, "
        "str, int, float, bool and None",
        code="RESULT_NOT_SERIALIZABLE",
    )
