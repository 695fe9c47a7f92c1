"""Attempts and the waits between them; whether there is a further one is for the caller to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from retrying import Retrying

T = TypeVar("T")


class Retries:
    """The attempts of one guarded call on its primary route, counted in this one place.

    :param plan: gets an attempt's exception and the number of attempts made; the wait before the
        next one in ms, or None: the exception is raised.
    :param on_retry: told when a retry begins, after its wait.
    """

    def __init__(
        self, plan: Callable[[Exception, int], float | None], on_retry: Callable[[], None]
    ) -> None:
        self._plan = plan
        self._on_retry = on_retry
        self._made = 0
        self._wait_ms = 0.0

    def run(self, once: Callable[[], T]) -> T:
        """Call ``once`` until it returns, or until there is no further attempt."""
        retrying: Any = Retrying(
            retry_on_exception=self._worth_it,
            wait_func=lambda _attempts, _elapsed_ms: self._wait_ms,
            before_attempts=self._before,
        )
        return cast(T, retrying.call(once))

    # The library asks for the wait later, and then without the exception.

    def _worth_it(self, exc: Exception) -> bool:
        wait_ms = self._plan(exc, self._made)
        self._wait_ms = wait_ms or 0.0
        return wait_ms is not None

    def _before(self, attempt: int) -> None:
        self._made = attempt
        if attempt > 1:
            self._on_retry()
