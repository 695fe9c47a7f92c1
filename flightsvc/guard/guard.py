"""One safe model call: budget → retry → bulkhead → breaker → attempt timeout → the attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from flightsvc.errors import (
    AttemptTimeout,
    BudgetExhausted,
    CircuitOpen,
    FailureType,
    FlightSvcError,
    GuardError,
    Overloaded,
    ProviderTimeout,
)
from flightsvc.guard.attempt import run_within
from flightsvc.guard.breaker import LoneWorker, ProbeLease, Target, TargetBreaker
from flightsvc.guard.budget import Budget
from flightsvc.guard.bulkhead import Bulkhead
from flightsvc.guard.retry import Retries
from flightsvc.metrics import (
    GUARD_ATTEMPTS,
    GUARD_BREAKER,
    GUARD_BULKHEAD,
    GUARD_QUEUE,
    GUARD_REJECTED,
    GUARD_RETRIES,
    Metrics,
)
from flightsvc.settings import Settings, StageSettings

T = TypeVar("T")

#: a timeout speaks against the provider if the attempt had this share of the stage's timeout
FAIR_SHARE = 0.5


class AiCallGuard:
    """What stands around an owner's model call; one for each worker.

    :param settings: the stages' times and places, ``breaker_failures``, ``breaker_reset_s``.
    :param metrics: where attempts, retries and refusals are counted.
    :param probe_lease: lets one worker of many try a model that failed; None: this worker alone.
    """

    def __init__(
        self, settings: Settings, metrics: Metrics, *, probe_lease: ProbeLease | None = None
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._lease: ProbeLease = probe_lease or LoneWorker()
        self._bulkheads: dict[str, Bulkhead] = {}
        self._breakers: dict[Target, TargetBreaker] = {}

    def execute(
        self,
        stage: str,
        target: Target,
        attempt: Callable[[float], T],
        *,
        on_admitted: Callable[[], None] | None = None,
    ) -> T:
        """Make a model call safely.

        :param stage: the kind of request; its settings give times, places and retries.
        :param target: the provider and model that ``attempt`` calls.
        :param attempt: makes one model call; gets the seconds it may take.
        :param on_admitted: called once, when the call has left the queue and before the first
            attempt; what it raises ends the call.
        :raises Overloaded: no place for this call; no attempt was made.
        :raises CircuitOpen: the target failed too often lately; no attempt was made.
        :raises AttemptTimeout: the last attempt took too long.
        :raises BudgetExhausted: the stage's whole time is used up.
        :raises Exception: what the last attempt raised.
        """
        policy = self._settings.stage(stage)
        bulkhead, breaker = self.bulkhead(stage), self.breaker(target)
        return _Call(self._metrics, stage, policy, bulkhead, breaker, attempt, on_admitted).run()

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
            found = self._breakers[target] = TargetBreaker(target, failures, reset_s, self._lease)
            self._metrics.gauge(GUARD_BREAKER, found.level, **target._asdict())
        return found


class _Call(Generic[T]):
    """One ``execute``: what its attempts share."""

    def __init__(
        self,
        metrics: Metrics,
        stage: str,
        policy: StageSettings,
        bulkhead: Bulkhead,
        breaker: TargetBreaker,
        attempt: Callable[[float], T],
        on_admitted: Callable[[], None] | None,
    ) -> None:
        self._metrics = metrics
        self._stage = stage
        self._policy = policy
        self._budget = Budget(policy.budget_ms / 1_000)
        self._bulkhead = bulkhead
        self._breaker = breaker
        self._attempt = attempt
        self._on_admitted = on_admitted
        self._failure: Exception | None = None  # how the last attempt failed

    def run(self) -> T:
        """Budget and retries."""
        delays = self._policy.retry_delays_ms
        retries = Retries(delays, self._budget, self._may_retry, self._count_retry)
        try:
            return retries.run(self._once)
        except (AttemptTimeout, ProviderTimeout) as exc:
            if self._budget.is_spent():
                raise BudgetExhausted from exc
            raise

    def _once(self) -> T:
        """Bulkhead, breaker and one attempt."""
        try:
            self._breaker.check()  # nobody queues for a model that is cut off
            with self._bulkhead.place(self._budget.patience_s()):
                self._admit()
                limit_s = self._limit_s()
                fair = limit_s * 1_000 >= self._policy.timeout_ms * FAIR_SHARE
                with self._breaker.watch(limit_s, fair=fair):
                    return self._attempt_once(limit_s)
        except (Overloaded, CircuitOpen) as refusal:
            if refusal is self._failure:
                raise
            self._count_refusal(refusal)
            if self._failure is None:
                raise
            # after an attempt, its failure says more
            raise self._failure from self._failure.__cause__

    def _admit(self) -> None:
        on_admitted, self._on_admitted = self._on_admitted, None
        if on_admitted is not None:
            on_admitted()

    def _limit_s(self) -> float:
        if self._budget.is_spent():
            exhausted = BudgetExhausted()
            self._count_refusal(exhausted)
            raise exhausted from self._failure
        return min(self._policy.timeout_ms / 1_000, self._budget.left_s())

    def _attempt_once(self, limit_s: float) -> T:
        outcome = "left"  # killed, or a timeout of somebody further out
        try:
            value = run_within(limit_s, self._attempt)
            outcome = "ok"
            return value
        except Exception as exc:
            self._failure = exc
            outcome = _outcome(exc)
            raise
        finally:
            self._metrics.count(GUARD_ATTEMPTS, stage=self._stage, outcome=outcome)

    def _may_retry(self, exc: FlightSvcError) -> bool:
        """Only what an attempt raised, and not for a breaker that would refuse anyway."""
        if exc is not self._failure:
            return False
        try:
            self._breaker.check()
        except CircuitOpen:
            return False
        return True

    def _count_retry(self) -> None:
        self._metrics.count(GUARD_RETRIES, stage=self._stage)

    def _count_refusal(self, refusal: GuardError) -> None:
        self._metrics.count(GUARD_REJECTED, stage=self._stage, reason=refusal.code.lower())


def _outcome(exc: Exception) -> str:
    """How an attempt failed: one of the five failure types, in lower case."""
    kind = exc.failure_type if isinstance(exc, FlightSvcError) else FailureType.UNEXPECTED
    return kind.value.lower()
