"""Which failures are worth a second attempt, when, and how often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from retrying import Retrying

from flightsvc.errors import (
    AttemptTimeout,
    FlightSvcError,
    ProviderRateLimited,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderUnreachable,
)
from flightsvc.guard.budget import Budget

T = TypeVar("T")

#: Failures that pass by themselves (second article, 2.1: network, load, timeouts, quota). An answer
#: that does not fit is not among them: a second call costs as much as the first and mostly
#: brings the same; nor are refusals, which asking again does not change.
PASSING = (
    ProviderUnreachable,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderRateLimited,
    AttemptTimeout,
)


class Retries:
    """The retries of one guarded call.

    :param delays_ms: the wait before each retry, in ms; as many retries as delays.
    :param budget: the call's time; no wait is begun after which no useful attempt fits.
    :param may_retry: the last word on a passing failure; False: it is raised at once.
    :param on_retry: told when a retry begins, after its wait.
    """

    def __init__(
        self,
        delays_ms: tuple[int, ...],
        budget: Budget,
        may_retry: Callable[[FlightSvcError], bool],
        on_retry: Callable[[], None],
    ) -> None:
        self._delays_ms = delays_ms
        self._budget = budget
        self._may_retry = may_retry
        self._on_retry = on_retry
        self._retry_after_ms = 0.0

    def run(self, once: Callable[[], T]) -> T:
        """Call ``once`` until it returns, or until its failure is not to be retried; raise that."""
        retrying: Any = Retrying(
            retry_on_exception=self._worth_it,
            stop_func=self._stop,
            wait_func=self._wait_ms,
            before_attempts=self._before,
        )
        return cast(T, retrying.call(once))

    # The library asks in this order; only the first question comes with the exception.

    def _worth_it(self, exc: Exception) -> bool:
        if not isinstance(exc, PASSING) or not exc.retryable:
            return False
        self._retry_after_ms = (exc.retry_after_s or 0.0) * 1_000
        return self._may_retry(exc)

    def _stop(self, attempts: int, _elapsed_ms: int) -> bool:
        if attempts > len(self._delays_ms):
            return True
        return self._wait_ms(attempts, 0) > self._budget.patience_s() * 1_000

    def _wait_ms(self, attempts: int, _elapsed_ms: int) -> float:
        return max(self._delays_ms[attempts - 1], self._retry_after_ms)

    def _before(self, attempt: int) -> None:
        if attempt > 1:
            self._on_retry()
