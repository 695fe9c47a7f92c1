"""Rules: what must hold of a failure so that it is a code."""

from __future__ import annotations

import builtins
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import gevent

from flightsvc import errors
from flightsvc.errors import ProviderError

#: of a message only this many characters are looked at
LONGEST_TEXT = 2_000
#: widest range of numbers in a rule
WIDEST_RANGE = 1_000

_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_ALL = frozenset({"BaseException", "Exception"})


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. A field that is empty asks for nothing; all others must hold.

    :param to: the code.
    :param exceptions: class names, plain or with their module; one in the error's ancestry.
    :param codes: the error's own code is one of them.
    :param statuses: HTTP status that the provider answered with, as text.
    :param upstream_codes: code in the provider's answer, as text.
    :param text: is found in the error's message.
    """

    to: str
    provider: str = ""
    exceptions: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    statuses: frozenset[str] = frozenset()
    upstream_codes: frozenset[str] = frozenset()
    text: re.Pattern[str] | None = None

    def fits(self, seen: Seen) -> bool:
        """Whether all holds of this failure."""
        return (
            (not self.provider or self.provider == seen.provider)
            and (not self.exceptions or not self.exceptions.isdisjoint(seen.kinds))
            and (not self.codes or seen.code in self.codes)
            and (not self.statuses or seen.status in self.statuses)
            and (not self.upstream_codes or seen.upstream_code in self.upstream_codes)
            and (self.text is None or self.text.search(seen.text) is not None)
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """What rules look at in a failure; what it does not have is empty."""

    provider: str = ""
    kinds: frozenset[str] = frozenset()
    code: str = ""
    status: str = ""
    upstream_code: str = ""
    text: str = field(default="", repr=False)

    @classmethod
    def of(cls, error: BaseException, provider: str) -> Seen:
        """Look at an error."""
        code = getattr(error, "code", None)
        status = upstream_code = None
        if isinstance(error, ProviderError):
            status, upstream_code = error.upstream_status, error.upstream_code
        return cls(
            provider=provider,
            kinds=kinds_of(type(error)),
            code=code if isinstance(code, str) else "",
            status="" if status is None else str(status),
            upstream_code="" if upstream_code is None else str(upstream_code),
            text=message_of(error),
        )


def kinds_of(kind: type[BaseException]) -> frozenset[str]:
    """The names of a class and its ancestors, plain and with their modules."""
    names = set()
    for each in kind.__mro__:
        names |= {each.__name__, f"{each.__module__}.{each.__qualname__}"}
    return frozenset(names)


def message_of(error: BaseException) -> str:
    """The beginning of an error's message; empty if it cannot say one."""
    try:
        return str(error)[:LONGEST_TEXT]
    except Exception:  # its own __str__, which we know nothing about
        return ""


def expanded(values: Iterable[str | int]) -> frozenset[str]:
    """The values as text, ranges of numbers written out.

    :raises ValueError: a range runs backwards or is too wide; says so.
    """
    found: set[str] = set()
    for value in values:
        span = _RANGE.fullmatch(value) if isinstance(value, str) else None
        if span is None:
            found.add(str(value))
            continue
        low, high = int(span[1]), int(span[2])
        if not low <= high < low + WIDEST_RANGE:
            raise ValueError(f"{value} must run upwards, over at most {WIDEST_RANGE} numbers")
        found.update(map(str, range(low, high + 1)))
    return frozenset(found)


def shadow(rules: Sequence[Rule], number: int) -> list[int]:
    """The earlier rules that leave nothing to this one; empty if it can be reached."""
    found: dict[int, None] = {}
    for case in _cases(rules[number]):
        for earlier in range(number):
            if _covers(rules[earlier], case, rules[number]):
                found[earlier] = None
                break
        else:
            return []
    return list(found)


class _Case(NamedTuple):
    """One way in which a rule can fit; None: it does not ask."""

    exception: str | None
    code: str | None
    status: str | None
    upstream_code: str | None


def _cases(rule: Rule) -> Iterator[_Case]:
    exceptions: Iterable[str | None] = rule.exceptions or [None]
    if not rule.exceptions and (rule.statuses or rule.upstream_codes):
        exceptions = [ProviderError.__name__]  # nobody else has them
    parts = (exceptions, rule.codes or [None], rule.statuses or [None])
    return map(_Case._make, itertools.product(*parts, rule.upstream_codes or [None]))


def _covers(earlier: Rule, case: _Case, rule: Rule) -> bool:
    """Whether the earlier rule fits whatever this case fits."""
    return (
        (not earlier.provider or earlier.provider == rule.provider)
        and (not earlier.exceptions or _is_one_of(case.exception, earlier.exceptions))
        and (not earlier.codes or case.code in earlier.codes)
        and (not earlier.statuses or case.status in earlier.statuses)
        and (not earlier.upstream_codes or case.upstream_code in earlier.upstream_codes)
        and (earlier.text is None or (rule.text is not None and earlier.text == rule.text))
    )


def _is_one_of(exception: str | None, names: frozenset[str]) -> bool:
    if not names.isdisjoint(_ALL):
        return True
    if exception is None:
        return False
    known = _known(exception)
    return exception in names or (known is not None and not names.isdisjoint(kinds_of(known)))


def _known(name: str) -> type[BaseException] | None:
    """The class of a name, if it is one of Python's or ours."""
    plain = name.rpartition(".")[2]
    found = getattr(errors, plain, None) or getattr(builtins, plain, None)
    if plain == "Timeout":
        found = gevent.Timeout
    if isinstance(found, type) and issubclass(found, BaseException) and name in kinds_of(found):
        return found
    return None
