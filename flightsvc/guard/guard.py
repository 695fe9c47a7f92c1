"""One safe model call: budget → retry → bulkhead → breaker → attempt timeout → the attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from flightsvc.checklist import Checklist, load_checklist
from flightsvc.facts import CallFacts
from flightsvc.guard.breaker import TargetBreaker
from flightsvc.guard.bulkhead import Bulkhead
from flightsvc.guard.call import GuardedCall, Scope
from flightsvc.guard.health import HealthLimits, Recent
from flightsvc.guard.routes import Routes, Target
from flightsvc.guard.shared import LoneWorker, SharedGuardState
from flightsvc.guard.windows import RetryBudget
from flightsvc.metrics import (
    GUARD_BREAKER,
    GUARD_BULKHEAD,
    GUARD_QUEUE,
    GUARD_RETRY_BUDGET,
    Metrics,
)
from flightsvc.settings import Settings

T = TypeVar("T")


class AiCallGuard:
    """What stands around an owner's model call; one for each worker.

    :param settings: the stages' times and places, the breakers, the retry budget.
    :param metrics: where attempts, retries and refusals are counted.
    :param checklist: what each failure means; None: as the settings say.
    :param shared: what the guards of all workers tell each other; None: this worker alone.
    :param limits: above which health there is no retry.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        checklist: Checklist | None = None,
        *,
        shared: SharedGuardState | None = None,
        limits: HealthLimits | None = None,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self.checklist = checklist or load_checklist(settings)
        self._shared: SharedGuardState = shared or LoneWorker()
        self._limits = limits or HealthLimits()
        self._bulkheads: dict[str, Bulkhead] = {}
        self._breakers: dict[Target, TargetBreaker] = {}
        self._recent: dict[Target, Recent] = {}
        self._retry_budgets: dict[Target, RetryBudget] = {}

    def execute(
        self,
        stage: str,
        routes: Routes[T],
        *,
        facts: CallFacts | None = None,
        on_admitted: Callable[[], None] | None = None,
        before_retry: Callable[[], None] | None = None,
        on_attempt: Callable[[Callable[[], None]], None] | None = None,
    ) -> T:
        """Make a model call safely.

        :param stage: the kind of request; its settings give times, places and retries.
        :param routes: whom to ask, and whom instead.
        :param facts: filled in with how the call went.
        :param on_admitted: called once, when the call has left the queue and before the first
            attempt; what it raises ends the call.
        :param before_retry: called before each retry is considered; :class:`SkipRetry` ends the
            call with the failure of its last attempt.
        :param on_attempt: called before each attempt with a function that the attempt may call
            when the model begins to answer: where answers take long, nobody need wait for the
            whole of one to know that the model is back.
        :raises FallbackAnswer: the primary route failed, the other one answered.
        :raises RetryExhausted: so did all retries, and there was no other route, or it failed too.
        :raises Overloaded: no place for this call; no attempt was made.
        :raises CircuitOpen: the target failed too often lately; no attempt was made.
        :raises BudgetExhausted: the stage's whole time is used up.
        :raises Exception: what the last attempt raised.
        """
        scope = Scope(self, self.checklist, self._metrics, self._limits, stage)
        call = GuardedCall(
            scope,
            self._settings.stage(stage),
            routes,
            CallFacts() if facts is None else facts,
            on_admitted,
            before_retry,
            on_attempt,
        )
        return call.run()

    def bulkhead(self, stage: str) -> Bulkhead:
        """The places of a stage in this worker."""
        found = self._bulkheads.get(stage)
        if found is None:
            policy = self._settings.stage(stage)
            found = self._bulkheads[stage] = Bulkhead(policy.concurrency, policy.queue)
            self._metrics.gauge(GUARD_BULKHEAD, found.in_use, stage=stage)
            self._metrics.gauge(GUARD_QUEUE, found.queued, stage=stage)
        return found

    def breaker(self, target: Target) -> TargetBreaker:
        """The breaker of a target in this worker."""
        found = self._breakers.get(target)
        if found is None:
            failures, reset_s = self._settings.breaker_failures, self._settings.breaker_reset_s
            found = self._breakers[target] = TargetBreaker(target, failures, reset_s, self._shared)
            self._metrics.gauge(GUARD_BREAKER, found.level, **target._asdict())
        return found

    def breakers(self) -> dict[Target, TargetBreaker]:
        """The breakers of all targets that this worker has asked."""
        return dict(self._breakers)

    def recent(self, target: Target) -> Recent:
        """What this worker's last attempts on a target came to."""
        found = self._recent.get(target)
        if found is None:
            found = self._recent[target] = Recent()
        return found

    def retry_budget(self, target: Target) -> RetryBudget:
        """How many retries a target may be sent by this worker."""
        found = self._retry_budgets.get(target)
        if found is None:
            settings = self._settings
            found = self._retry_budgets[target] = RetryBudget(
                settings.retry_budget_ratio,
                settings.retry_budget_min,
                settings.retry_budget_window_s,
            )
            self._metrics.gauge(GUARD_RETRY_BUDGET, found.left, **target._asdict())
        return found
