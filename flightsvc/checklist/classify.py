"""Every failure is exactly one code of the list."""

from __future__ import annotations

from collections.abc import Container, Sequence

from flightsvc import errors
from flightsvc.checklist.model import UNKNOWN
from flightsvc.checklist.rules import Rule, Seen
from flightsvc.errors import CallFailed, FallbackAnswer


class Classifier:
    """Says which code a failure is.

    In this order: the code that the error names itself; the first rule that fits;
    ``AI_UNKNOWN_ERROR``.

    :param names: the codes of the list.
    :param rules: in the order in which they are tried.
    """

    def __init__(self, names: Container[str], rules: Sequence[Rule]) -> None:
        self._names = names
        self.rules = tuple(rules)

    def name_of(self, error: BaseException, provider: str = "") -> str:
        """The name of a failure's code.

        :param provider: which provider was asked; empty: unknown, or none.
        """
        error = failure_behind(error)
        named = _named(error)
        if named in self._names:
            return named
        seen = Seen.of(error, provider)
        return next((rule.to for rule in self.rules if rule.fits(seen)), UNKNOWN)


def failure_behind(error: BaseException) -> BaseException:
    """What a call really failed with, where that is known in this worker."""
    while True:
        inner: BaseException | None = None
        if isinstance(error, FallbackAnswer):
            inner = error.failure
        elif isinstance(error, CallFailed):
            inner = error.__cause__
        if inner is None:
            return error
        error = inner


def _named(error: BaseException) -> str:
    """The code that somebody gave this very error, or its class; empty if it is only the one
    that all of a class of ours have: of those the rules know more."""
    code = getattr(error, "code", None)
    if not isinstance(code, str):
        return ""
    for kind in type(error).__mro__:
        default = kind.__dict__.get("default_code")
        if default is not None:
            return "" if default == code and kind.__module__ == errors.__name__ else code
    return code
