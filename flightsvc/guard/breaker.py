"""One breaker for each provider and model: who fails in a row is left alone for a while.

pybreaker counts and keeps the state; the model call itself never runs inside it. ``call()`` would
hold its lock for the whole call. ``with calling()`` around the call knows only two outcomes: an
excluded exception is a *success* to it (it resets the count and closes a half-open breaker), a kill
a *failure*. So the call runs outside, and only an outcome that says something about the provider
is then put in through ``with calling()``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import NamedTuple, Protocol

from pybreaker import STATE_CLOSED, STATE_HALF_OPEN, STATE_OPEN, CircuitBreaker

from flightsvc.errors import (
    AnswerInvalid,
    AttemptTimeout,
    CircuitOpen,
    ProviderError,
    ProviderRejected,
    ProviderTimeout,
)

#: what a caller is told to wait, in s, while another one tries whether the model is back
PROBE_RETRY_AFTER_S = 1.0
#: the states as numbers, for the gauge
LEVELS = {STATE_CLOSED: 0, STATE_HALF_OPEN: 1, STATE_OPEN: 2}


class Target(NamedTuple):
    """What a breaker stands before. Make it from configured names, never from a request's text."""

    provider: str
    model: str


class ProbeLease(Protocol):
    """Lets one worker at a time try whether a target is back. Neither method raises."""

    def take(self, target: Target, lease_s: float, /) -> str | None:
        """A token, good for ``lease_s`` seconds; None if another worker holds the lease."""

    def give_back(self, target: Target, token: str, /) -> None:
        """End the lease early, if it is still this token's."""


class LoneWorker:
    """The lease of a worker that asks no other: always granted."""

    def take(self, _target: Target, _lease_s: float, /) -> str | None:
        return "lone"

    def give_back(self, _target: Target, _token: str, /) -> None:
        return None


class TargetBreaker:
    """The breaker of one target in this worker.

    closed → open after ``failures`` failures in a row → after ``reset_s`` seconds half-open: one
    call at a time may try → closed if it succeeds, open again if it fails; if it is killed, or its
    end says nothing about the provider, the next caller may try.

    An outcome counts only in the state in which its call began: a late failure does not renew the
    open time, a late success does not close.
    """

    def __init__(self, target: Target, failures: int, reset_s: float, lease: ProbeLease) -> None:
        self._target = target
        self._reset_s = reset_s
        self._lease = lease
        self._probing = False
        self._era = 0  # one more at each change of state
        self._opened_at = 0.0
        self._breaker = CircuitBreaker(
            fail_max=failures, reset_timeout=reset_s, throw_new_error_on_trip=False
        )

    @property
    def state(self) -> str:
        """``closed``, ``half-open`` or ``open``."""
        return self._breaker.current_state

    def level(self) -> int:
        """The state as a number: 0 closed, 1 half-open, 2 open."""
        return LEVELS[self.state]

    def check(self) -> None:
        """Say whether a call would be let through now; changes nothing.

        :raises CircuitOpen: it would not; ``retry_after_s`` says when to ask again.
        """
        if self.state == STATE_OPEN:
            left_s = self._opened_at + self._reset_s - monotonic()
            if left_s > 0:
                raise CircuitOpen(retry_after_s=left_s)
        if self._probing:
            raise CircuitOpen(retry_after_s=PROBE_RETRY_AFTER_S)

    @contextmanager
    def watch(self, limit_s: float, *, fair: bool) -> Iterator[None]:
        """Let the one call inside the ``with`` block through, and take note of how it ends.

        :param limit_s: the longest time that the call takes, in s.
        :param fair: whether that is enough for a healthy provider; if not, a timeout says nothing.
        :raises CircuitOpen: the call is not let through.
        """
        self.check()
        token = None if self.state == STATE_CLOSED else self._take_probe(limit_s)
        era = self._era
        try:
            yield
        except BaseException as exc:
            if speaks_against(exc, fair=fair):
                self._note(era, failed=True)
            raise
        else:
            self._note(era, failed=False)
        finally:
            if token is not None:
                self._end_probe(token)

    def _take_probe(self, limit_s: float) -> str:
        if self.state == STATE_OPEN:
            self._breaker.half_open()
            self._era += 1
        token = None
        self._probing = True  # before the lease is asked: that may wait
        try:
            token = self._lease.take(self._target, limit_s)
        finally:
            self._probing = token is not None
        if token is None:
            raise CircuitOpen(retry_after_s=PROBE_RETRY_AFTER_S)
        return token

    def _end_probe(self, token: str) -> None:
        self._probing = False
        self._lease.give_back(self._target, token)

    def _note(self, era: int, *, failed: bool) -> None:
        if era != self._era:
            return
        before = self.state
        try:
            with self._breaker.calling():
                if failed:
                    raise _Failed
        except _Failed:
            pass
        if self.state != before:
            self._era += 1
            self._opened_at = monotonic()


def speaks_against(exc: BaseException, *, fair: bool) -> bool:
    """Whether a call's end counts against the provider.

    What the caller brought about does not: a refused request, an answer that does not fit (a
    crafted input could otherwise shut a model for everyone), a kill, a programming error. An
    attempt cut short by its budget (not ``fair``) proves nothing by timing out.
    """
    if isinstance(exc, (AttemptTimeout, ProviderTimeout)):
        return fair
    return isinstance(exc, ProviderError) and not isinstance(exc, (ProviderRejected, AnswerInvalid))


class _Failed(Exception):
    """Tells pybreaker of a failure, without adding to the real exception's traceback."""
