"""A short name for "the same error again".

A code says what to do about a failure; many causes share one. The fingerprint tells them apart
(second article, 5.2): a hash of what failed, where, and with which words, without what differs from
one occurrence to the next.
"""

from __future__ import annotations

import hashlib
import re
import sys
from functools import lru_cache
from typing import Final

from flightsvc.checklist.classify import failure_behind
from flightsvc.checklist.rules import message_of
from flightsvc.errors import CallFailed, ProviderError

#: hex digits of a fingerprint
LENGTH: Final = 16

#: the guard and the flight: errors pass through them on their way from the call
_PASSED_THROUGH = ("flightsvc.guard.", "flightsvc.flight.")
_LIBRARIES = ("/site-packages/", "/dist-packages/")

_UNIT = r"(?=%|\b|[A-Za-zµ]{1,3}\b)"
#: what differs between occurrences, and what stands for it; in this order
_VARIABLE: Final = tuple(
    (re.compile(pattern, re.DOTALL | re.ASCII), stand_in)
    for pattern, stand_in in (
        (r"\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s\"'<>«»“”]+", "<url>"),
        (r"\"(?:\\.|[^\"\\])*\"|“[^”]*”|‘[^’]*’|«[^»]*»|「[^」]*」|《[^》]*》|`[^`]*`", "<text>"),
        (r"(?<!\w)'(?:\\.|[^'\\])*'(?!\w)", "<text>"),
        (r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "<mail>"),
        (r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "<id>"),
        (r"\b0[xX][0-9a-fA-F]+\b", "<address>"),
        (r"(?<![\w<])(?:/[\w.@~+-]+){2,}/?", "<path>"),
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", "<time>"),
        (r"(?<!\w)[+-]?\d+(?:\.\d+)?[eE][+-]?\d+\b", "<number>"),
        (rf"(?<!\w)[+-]?\d{{1,9}}(?:[.,:/-]\d{{1,9}})*{_UNIT}", "<number>"),
        (r"\b(?=\w*\d)\w*[A-Za-z_]\w*\b", "<id>"),
        (r"[+-]?\d+(?:[.,:/-]\d+)*", "<number>"),
    )
)
_BLANKS = re.compile(r"\s+")


def fingerprint(error: BaseException) -> str:
    """A failure's fingerprint: 16 hex digits, the same on every worker and after a release that
    only moved lines.

    :param error: what was raised; of one that stands for another failure, that failure counts.
    """
    error = failure_behind(error)
    parts = "\0".join((_kind(error), place(error), normalised(message_of(error))))
    return hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()[:LENGTH]


def normalised(message: str) -> str:
    """A message without addresses, numbers, ids and quoted text."""
    for pattern, stand_in in _VARIABLE:
        message = pattern.sub(stand_in, message)
    return _BLANKS.sub(" ", message).strip()


def place(error: BaseException) -> str:
    """Module and function of the innermost frame that is neither Python's nor a library's: the
    caller's or the provider's. Where all are a library's, the one that was called first; where
    there is none, the guard's own; empty if the error was never raised here."""
    found = first = passed = ""
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        module = str(frame.f_globals.get("__name__", ""))
        where = f"{module}:{frame.f_code.co_qualname}"
        if module.startswith(_PASSED_THROUGH):
            found, first, passed = "", "", where
        else:
            first = first or where
            if _is_ours(frame.f_code.co_filename, module):
                found = where
        trace = trace.tb_next
    return found or first or passed


def _kind(error: BaseException) -> str:
    """Class and code: what kind of failure it is, in the program's and the provider's words."""
    kind = type(error)
    parts = [f"{kind.__module__}.{kind.__qualname__}"]
    if isinstance(error, (ProviderError, CallFailed)):
        parts.append(error.code)
    if isinstance(error, ProviderError):
        parts += [str(error.upstream_status or ""), _upstream_code(error.upstream_code)]
    return " ".join(parts)


def _upstream_code(code: str | None) -> str:
    """A provider's code; a number is kept whole, for it names a kind of failure."""
    text = str(code or "")
    return text if re.fullmatch(r"[0-9]{1,6}", text) else normalised(text)


@lru_cache(maxsize=512)
def _is_ours(file: str, module: str) -> bool:
    if module == "flightsvc" or module.startswith("flightsvc."):
        return True
    is_python = module.partition(".")[0] in _STDLIB or file.startswith("<")
    return not is_python and not any(each in file for each in _LIBRARIES)


_STDLIB = frozenset(sys.stdlib_module_names) - {"__main__"}
