"""One guarded call: what its attempts share, and what follows when they have failed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import gevent

from flightsvc.checklist import Checklist, Code, fingerprint
from flightsvc.errors import (
    AttemptTimeout,
    BudgetExhausted,
    CircuitOpen,
    FailureType,
    FallbackAnswer,
    FlightSvcError,
    GuardError,
    Overloaded,
    ProviderTimeout,
    RetryExhausted,
    SkipRetry,
)
from flightsvc.facts import CallFacts
from flightsvc.guard.attempt import run_within
from flightsvc.guard.breaker import TargetBreaker, speaks_against
from flightsvc.guard.budget import Budget
from flightsvc.guard.bulkhead import Bulkhead
from flightsvc.guard.health import HealthLimits, HealthSnapshot, Recent
from flightsvc.guard.retry import Retries
from flightsvc.guard.routes import Route, Routes, Target
from flightsvc.guard.verdict import checked, forbids_asking_again
from flightsvc.guard.windows import RetryBudget
from flightsvc.metrics import (
    GUARD_ATTEMPTS,
    GUARD_HELD,
    GUARD_REJECTED,
    GUARD_RETRIES,
    GUARD_SPENT_MONEY,
    Metrics,
)
from flightsvc.settings import StageSettings

log = logging.getLogger(__name__)

T = TypeVar("T")

#: a timeout speaks against the provider if the attempt had this share of the stage's timeout
FAIR_SHARE = 0.5


class Keeper(Protocol):
    """Holds what outlives a call; the guard does."""

    def bulkhead(self, stage: str) -> Bulkhead: ...
    def breaker(self, target: Target) -> TargetBreaker: ...
    def recent(self, target: Target) -> Recent: ...
    def retry_budget(self, target: Target) -> RetryBudget: ...


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a call happens."""

    keeper: Keeper
    checklist: Checklist
    metrics: Metrics
    limits: HealthLimits
    stage: str


class GuardedCall(Generic[T]):
    """One ``execute``; its parameters are described there."""

    def __init__(
        self,
        scope: Scope,
        policy: StageSettings,
        routes: Routes[T],
        facts: CallFacts,
        on_admitted: Callable[[], None] | None,
        before_retry: Callable[[], None] | None,
        on_attempt: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self._scope = scope
        self._policy = policy
        self._routes = routes
        self._facts = facts
        self._on_admitted = on_admitted
        self._before_retry = before_retry
        self._on_attempt = on_attempt
        self._budget = Budget(policy.budget_ms / 1_000)
        self._bulkhead = scope.keeper.bulkhead(scope.stage)
        self._breaker = scope.keeper.breaker(routes.primary.target)
        self._failure: Exception | None = None  # how the last attempt failed
        self._final: Exception | None = None  # what ends the call without any fallback
        self._used_up = False  # all retries that the checklist allows were made

    def run(self) -> T:
        """Budget and retries, then the fallback route."""
        self._scope.keeper.retry_budget(self._routes.primary.target).called()
        try:
            return Retries(self._plan, self._count_retry).run(self._primary)
        except FallbackAnswer:  # the call itself knew what to answer instead
            raise
        except Exception as error:
            failed = self._over_budget(error)
            code = self._note(failed, error)
            if error is self._final:
                raise
            self._ask_instead(code, failed)
            if failed is not error:
                raise failed from error
            if self._used_up:
                raise self._exhausted(code, error) from error
            raise

    # -- one attempt ---------------------------------------------------------------------------

    def _primary(self) -> T:
        """One attempt on the primary route."""
        try:
            return self._once(self._routes.primary, self._breaker)
        except (Overloaded, CircuitOpen) as refusal:
            if refusal is self._failure:
                raise
            self._count_refusal(refusal)
            if self._failure is None:
                raise
            # after an attempt, its failure says more
            raise self._failure from self._failure.__cause__

    def _once(self, route: Route[T], breaker: TargetBreaker) -> T:
        """Bulkhead, breaker and one attempt."""
        breaker.check()  # nobody queues for a model that is cut off
        with self._bulkhead.place(self._budget.patience_s()):
            self._admit()
            limit_s = self._limit_s()
            fair = limit_s * 1_000 >= self._policy.timeout_ms * FAIR_SHARE
            with breaker.watch(limit_s, fair=fair) as answers:
                if self._on_attempt is not None:
                    self._on_attempt(answers)
                return self._attempt(route, limit_s)

    def _admit(self) -> None:
        on_admitted, self._on_admitted = self._on_admitted, None
        if on_admitted is not None:
            try:
                on_admitted()
            except Exception as error:
                self._final = error
                raise

    def _limit_s(self) -> float:
        if self._budget.is_spent():
            exhausted = BudgetExhausted()
            self._count_refusal(exhausted)
            raise exhausted from self._failure
        return min(self._policy.timeout_ms / 1_000, self._budget.left_s())

    def _attempt(self, route: Route[T], limit_s: float) -> T:
        outcome, recent = "left", self._scope.keeper.recent(route.target)
        try:  # "left": killed, or a timeout of somebody further out
            value = run_within(limit_s, route.attempt)
            outcome = "ok"
            recent.add(failed=False)
            return value
        except Exception as error:
            self._failure = error
            outcome = _outcome(error)
            recent.add(failed=speaks_against(error, fair=True))
            raise
        finally:
            metrics, stage = self._scope.metrics, self._scope.stage
            metrics.count(GUARD_ATTEMPTS, stage=stage, outcome=outcome)
            metrics.count(GUARD_SPENT_MONEY, self._policy.price_millionths, stage=stage)

    # -- is there a further one? ---------------------------------------------------------------

    def _plan(self, error: Exception, made: int) -> float | None:
        """The wait before the next attempt, in ms; None: there is none."""
        if error is not self._failure or isinstance(error, FallbackAnswer):
            return None  # refused before it was made, or answered
        code = self._classify(error)
        delays = self._scope.checklist.delays_ms(code, self._policy)
        if made > len(delays):
            self._used_up = bool(delays)
            return None
        if forbids_asking_again(error):
            return None
        after_s = getattr(error, "retry_after_s", None) or 0.0
        wait_ms = max(float(delays[made - 1]), after_s * 1_000)
        if wait_ms > self._budget.patience_s() * 1_000:
            return None
        return wait_ms if self._still_wanted() and self._bearable() else None

    def _still_wanted(self) -> bool:
        """The state hook's word."""
        if self._before_retry is None:
            return True
        try:
            self._before_retry()
        except SkipRetry:
            self._final = self._failure
            return False
        return True

    def _bearable(self) -> bool:
        """Whether health and retry budget allow a retry; if so, it is charged now."""
        target = self._routes.primary.target
        seen = HealthSnapshot(
            bulkhead_use=self._bulkhead.use(),
            breaker=self._breaker.heard_state(),
            error_rate=self._scope.keeper.recent(target).error_rate(),
            input_length=self._facts.input_length,
        )
        held = self._scope.limits.exceeded(seen)
        if not held and not self._scope.keeper.retry_budget(target).take():
            held = "retry_budget"
        if held:
            self._scope.metrics.count(GUARD_HELD, stage=self._scope.stage, reason=held)
            return False
        return True

    # -- what follows --------------------------------------------------------------------------

    def _ask_instead(self, code: Code, failed: Exception) -> None:
        """At most one attempt on the fallback route.

        :raises FallbackAnswer: it answered.
        """
        route = self._routes.instead(code)
        if route is None:
            return
        wait_s = 0.0
        if self._used_up and code.retry and code.retry.fallback_route_after_ms:
            wait_s = code.retry.fallback_route_after_ms / 1_000
        if self._budget.is_spent() or wait_s > self._budget.patience_s():
            return
        gevent.sleep(wait_s)
        try:
            value = self._once(route, self._scope.keeper.breaker(route.target))
        except Exception as error:
            if error is self._final:
                raise
            log.info("the fallback route failed too: %s", type(error).__name__)
            return
        action = self._facts.fallback_action = code.fallback.action
        failure = checked(code, failed)
        failure.retryable = True  # who asks again can have it again
        raise FallbackAnswer(value, action=action, failure=failure) from failed

    def _over_budget(self, error: Exception) -> Exception:
        if isinstance(error, (AttemptTimeout, ProviderTimeout)) and self._budget.is_spent():
            return BudgetExhausted()
        return error

    def _exhausted(self, code: Code, failed: Exception) -> RetryExhausted:
        self._facts.cause = code.name
        self._facts.code = "RETRY_EXHAUSTED"
        return RetryExhausted(
            f"All retries are used up; the last attempt failed with {code.name}.",
            retry_after_s=getattr(failed, "retry_after_s", None),
        )

    def _note(self, failed: Exception, raised: Exception) -> Code:
        """What kind of failure it is, for whoever reads the facts."""
        code = self._classify(failed)
        self._facts.code = code.name
        self._facts.fingerprint = fingerprint(raised)
        return code

    def _classify(self, error: Exception) -> Code:
        return self._scope.checklist.classify(error, self._routes.primary.target.provider)

    def _count_retry(self) -> None:
        self._facts.retry_count += 1
        self._scope.metrics.count(GUARD_RETRIES, stage=self._scope.stage)

    def _count_refusal(self, refusal: GuardError) -> None:
        self._scope.metrics.count(
            GUARD_REJECTED, stage=self._scope.stage, reason=refusal.code.lower()
        )


def _outcome(error: Exception) -> str:
    """How an attempt failed: one of the five failure types, in lower case."""
    kind = error.failure_type if isinstance(error, FlightSvcError) else FailureType.UNEXPECTED
    return kind.value.lower()
