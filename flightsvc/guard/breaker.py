"""One breaker for each provider and model: who fails in a row is left alone for a while.

pybreaker counts and keeps the state; the model call itself never runs inside it. ``call()`` would
hold its lock for the whole call. ``with calling()`` around the call knows only two outcomes: an
excluded exception is a *success* to it (it resets the count and closes a half-open breaker), a kill
a *failure*. So the call runs outside, and only an outcome that says something about the provider
is then put in through ``with calling()``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from pybreaker import STATE_CLOSED, STATE_HALF_OPEN, STATE_OPEN, CircuitBreaker

from flightsvc.errors import (
    AnswerInvalid,
    AttemptTimeout,
    CircuitOpen,
    ProviderError,
    ProviderRejected,
    ProviderTimeout,
)
from flightsvc.guard.routes import Target
from flightsvc.guard.shared import SharedGuardState

#: what a caller is told to wait, in s, while another one tries whether the model is back
PROBE_RETRY_AFTER_S = 1.0
#: a hint holds for so many seconds after the open time, or for a second open time: while it does,
#: other workers know that they have to probe
TAIL_S = 5.0
#: a hint says something new if its opening is so much later, in s, than the last one known here
NEWER_S = 0.25
#: a hint that is gone so long before its end, in s, was taken back
TAKEN_BACK_S = 1.0
#: the states as numbers, for the gauge
LEVELS = {STATE_CLOSED: 0, STATE_HALF_OPEN: 1, STATE_OPEN: 2}


class TargetBreaker:
    """The breaker of one target in this worker.

    closed → open after ``failures`` failures in a row → after ``reset_s`` seconds half-open: one
    call at a time may try → closed if it succeeds, open again if it fails; if it is killed, or its
    end says nothing about the provider, the next caller may try.

    A breaker that opens is told to the other workers, and they open too: so only one of them all
    tries whether the target is back, whichever found out that it was gone. One that closes is told
    as well.

    An outcome counts only in the state in which its call began: a late failure does not renew the
    open time, a late success does not close.
    """

    def __init__(
        self, target: Target, failures: int, reset_s: float, shared: SharedGuardState
    ) -> None:
        self._target = target
        self._reset_s = reset_s
        self._tail_s = max(reset_s, TAIL_S)
        self._shared = shared
        self._probing = False
        self._era = 0  # one more at each change of state
        self._opened_at = 0.0
        self._own_news_at = float("-inf")
        self._hint_until = 0.0  # end of the hint that opened it; 0: it opened by itself
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

    def heard_state(self) -> str:
        """The state, with what the other workers told."""
        self._hear()
        return self.state

    def check(self) -> None:
        """Say whether a call would be let through now; changes nothing.

        :raises CircuitOpen: it would not; ``retry_after_s`` says when to ask again.
        """
        self._hear()
        if self.state == STATE_OPEN:
            left_s = self._opened_at + self._reset_s - monotonic()
            if left_s > 0:
                raise CircuitOpen(retry_after_s=left_s)
        if self._probing:
            raise CircuitOpen(retry_after_s=PROBE_RETRY_AFTER_S)

    def _hear(self) -> None:
        """Take over what another worker's breaker found out."""
        told_s, now = self._shared.breaker_open(self._target), monotonic()
        if self._probing:
            return  # this worker's own probe will know better
        if told_s is not None:
            self._open_by_hint(now + told_s)
        elif self._hint_until - now > TAKEN_BACK_S:
            self._hint_until = 0.0  # taken back before its end: the target is there again
            self._breaker.close()
            self._era += 1

    def _open_by_hint(self, until: float) -> None:
        opened_at = until - self._tail_s - self._reset_s
        if opened_at < max(self._opened_at, self._own_news_at) + NEWER_S:
            return  # known already, or this worker's own word
        self._hint_until, self._opened_at = until, opened_at
        if self.state != STATE_OPEN:
            self._breaker.open()
            self._era += 1

    @contextmanager
    def watch(self, limit_s: float, *, fair: bool) -> Iterator[Callable[[], None]]:
        """Let the one call inside the ``with`` block through, and take note of how it ends.

        :param limit_s: the longest time that the call takes, in s.
        :param fair: whether that is enough for a healthy provider; if not, a timeout says nothing.
        :returns: to be called when the target begins to answer: a probe has found out then what
            it was for, however long the answer takes.
        :raises CircuitOpen: the call is not let through.
        """
        self.check()
        token = None if self.state == STATE_CLOSED else self._take_probe(limit_s)
        era = self._era

        def answers() -> None:
            nonlocal token
            probe, token = token, None
            if probe is not None:
                self._note(era, failed=False)
                self._end_probe(probe)

        try:
            yield answers
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
            token = self._shared.take(self._target, limit_s)
        finally:
            self._probing = token is not None
        if token is None:
            retry_after_s = self._shared.retry_after_s(self._target) or PROBE_RETRY_AFTER_S
            raise CircuitOpen(retry_after_s=retry_after_s)
        return token

    def _end_probe(self, token: str) -> None:
        self._probing = False
        self._shared.give_back(self._target, token)

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
            self._opened_at = self._own_news_at = monotonic()
            self._hint_until = 0.0
            self._tell()

    def _tell(self) -> None:
        if self.state == STATE_OPEN:
            self._shared.opened(self._target, self._reset_s + self._tail_s)
        else:
            self._shared.closed(self._target)


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
