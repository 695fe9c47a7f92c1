"""W3C Trace Context, level 1: ``traceparent`` and ``tracestate`` in and out.

The rules are those of the recommendation of 23 November 2021 (section numbers below are its).
This service records no spans of its own: it takes part in its callers' traces, so that their
tools and this service's log name the same trace.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

#: the only flag that level 1 knows; the others are set to zero (3.2.2.5)
SAMPLED = 0x01
#: most members of a tracestate (3.3.1)
MAX_MEMBERS = 32
#: what is passed on of a tracestate, in characters; beyond it, members longer than
#: ``LONG_MEMBER`` go first, then those at the end (3.3.1.5)
MAX_STATE, LONG_MEMBER = 512, 128

_PARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})"
    r"(?P<rest>-.*)?",
    re.ASCII,
)
_KEY = r"(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})"
_VALUE = r"[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
_MEMBER = re.compile(f"(?P<key>{_KEY})=(?:{_VALUE})", re.ASCII)


@dataclass(frozen=True, slots=True)
class TraceContext:
    """One place in a trace: the work that one request or one call is.

    :param trace_id: the trace, 32 hex digits, not all zero.
    :param span_id: this work within it, 16 hex digits, not all zero.
    :param sampled: whether whoever began the trace may have recorded it.
    :param state: the tracestate to pass on; empty for none.
    """

    trace_id: str
    span_id: str
    sampled: bool = False
    state: str = ""

    @classmethod
    def new(cls) -> Self:
        """A trace that begins here."""
        return cls(_random_id(16), _random_id(8))

    @classmethod
    def of(cls, traceparent: str | None, tracestate: str | None = None) -> Self:
        """The work that a request with these headers is: in the caller's trace, or in a new one
        where the caller gives none that is valid.

        :param traceparent: the header; repeated headers are joined by commas and not valid.
        :param tracestate: the header, repeated ones joined by commas.
        """
        given = parse_parent(traceparent)
        if given is None:
            return cls.new()
        trace_id, sampled = given
        return cls(trace_id, _random_id(8), sampled, parse_state(tracestate))

    def child(self) -> Self:
        """Work that this work begins: the same trace, a span id of its own."""
        return replace(self, span_id=_random_id(8))

    @property
    def traceparent(self) -> str:
        """The header's value."""
        return f"00-{self.trace_id}-{self.span_id}-{SAMPLED if self.sampled else 0:02x}"

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers to send with a request that this work makes."""
        headers = {"traceparent": self.traceparent}
        return {**headers, "tracestate": self.state} if self.state else headers


def parse_parent(header: str | None) -> tuple[str, bool] | None:
    """Trace id and sampled flag of a ``traceparent``; None if it is not valid (3.2).

    Versions above 00 are read as far as they agree with 00, as 3.2.4 asks.
    """
    match = _PARENT.fullmatch((header or "").strip(" \t"))
    if match is None or match["version"] == "ff" or (match["version"] == "00" and match["rest"]):
        return None
    if not match["trace"].strip("0") or not match["span"].strip("0"):
        return None
    return match["trace"], bool(int(match["flags"], 16) & SAMPLED)


def parse_state(header: str | None) -> str:
    """The ``tracestate`` to pass on, in its shortest form; empty if there is none or if any of it
    is not valid (3.3).
    """
    members: dict[str, str] = {}
    given = (member.strip(" \t") for member in (header or "").split(","))
    for member in filter(None, given):
        match = _MEMBER.fullmatch(member)
        if match is None or match["key"] in members or len(members) == MAX_MEMBERS:
            return ""
        members[match["key"]] = member
    return _shortened(list(members.values()))


def _shortened(members: list[str]) -> str:
    if len(",".join(members)) > MAX_STATE:
        members = [member for member in members if len(member) <= LONG_MEMBER]
    while len(",".join(members)) > MAX_STATE:
        members.pop()
    return ",".join(members)


def _random_id(size: int) -> str:
    """Random hex digits, not all zero.

    :param size: in bytes.
    """
    while True:
        number = os.urandom(size)
        if any(number):
            return number.hex()
