"""What follows a guarded call: its stand-in, its line in the log, and who hears of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flightsvc.checklist import Checklist, Code, fingerprint
from flightsvc.checklist.events import ReviewAsked, StateEvent, event_of
from flightsvc.errors import (
    BudgetExhausted,
    CallFailed,
    FailureType,
    FallbackAnswer,
    FlightSvcError,
    GuardError,
    NestedFlight,
    Overloaded,
    SessionBusy,
)
from flightsvc.facts import CallFacts, CallWatch
from flightsvc.flight.call import FlightContext
from flightsvc.flight.result import FlightResult
from flightsvc.flight.state import Role
from flightsvc.guard import checked
from flightsvc.interview.question import Question
from flightsvc.interview.standins import spoken, stale
from flightsvc.logs import Told, log_failure
from flightsvc.providers.base import Provider
from flightsvc.store.shared import SharedState

#: codes of flights that no call failed with: the owners died one after the other, or Redis did not
#: take the answer; who is told of it counts it
UNCALLED = ("FLIGHT_OWNERS_LOST", "RESULT_NOT_STORED")


class Aftermath:
    """Does what the checklist says once a call has ended. Never waits for Redis, but to find an
    older answer.

    :param shared: None: this worker alone; then nothing is counted and no event goes out.
    :param content: whether the log may hold the words of foreign errors.
    """

    def __init__(
        self, checklist: Checklist, shared: SharedState | None, watch: CallWatch, *, content: bool
    ) -> None:
        self._checklist = checklist
        self._shared = shared
        self._watch = watch
        self._content = content

    def succeeded(self, question: Question, value: dict[str, Any]) -> None:
        """The primary route answered."""
        shared = self._shared
        if shared is not None:
            module = f"stage:{question.stage}"
            if module in shared.modules.names:
                shared.counters.succeeded(module)
            shared.last_good.remember(question.place, value)

    def failed(
        self,
        ctx: FlightContext,
        question: Question,
        provider: Provider,
        facts: CallFacts,
        error: BaseException,
        *,
        duration_s: float,
    ) -> BaseException:
        """It failed, in whatever way.

        :returns: what the flight ends with: a stand-in, or the failure under its code.
        """
        codes = self._codes(facts, error, provider)
        end = self._end(question, facts, codes, error)
        if isinstance(end, FallbackAnswer):  # then the codes after its own do not come about
            codes = [code for code in codes if code.name == facts.code]
        log_failure(
            facts,
            _told(ctx),
            error,
            duration_s=duration_s,
            foreseen=codes[-1].failure_type is not FailureType.UNEXPECTED,
            content=self._content,
        )
        for each in codes:
            self._tell(ctx, each, provider, facts)
        return end

    def overdue(
        self, ctx: FlightContext, provider: Provider, facts: CallFacts, *, duration_s: float
    ) -> None:
        """It was stopped, for it did not end within its flight's time; who waits has been told."""
        error = BudgetExhausted()
        code = self._checklist.classify(error, provider.name)
        facts.code, facts.cause, facts.fallback_action = code.name, "", ""
        facts.fingerprint = fingerprint(error)
        log_failure(facts, _told(ctx), error, duration_s=duration_s, foreseen=True)
        self._tell(ctx, code, provider, facts)

    def again(self, place: tuple[str, ...], error: FlightSvcError) -> FlightResult | None:
        """What stands in where a flight is remembered as a failure that has a stand-in of its own:
        who asks again gets it again, and no model is asked.

        :param place: where the question stands; see :class:`Question`. Its tenant and stage alone
            have no older answer.
        """
        code = self._checklist.codes.get(error.code)
        if code is None or not isinstance(error, CallFailed):
            return None
        value = self._stand_in(place, code)
        if value is None:
            return None
        return FlightResult.stand_in(value, code.fallback.action, error.flight_id, error.fence)

    def refreshes(self, stand_in: FlightResult) -> bool:
        """Whether a new answer is fetched while an older one stands in."""
        if stand_in.fallback != "last_good" or not isinstance(stand_in.value, dict):
            return False
        code = self._checklist.codes.get(str(stand_in.value.get("code")))
        return code is not None and code.fallback.params.get("refresh") is True

    def refused(self, facts: CallFacts, error: FlightSvcError, *, returned: bool) -> None:
        """Count what no call failed with: a caller that was turned away, a result that could not
        be kept. A call's failure is counted where the call was made, once.

        :param returned: whether this caller's own call was made, and went well.
        """
        of_a_call = isinstance(error, (CallFailed, GuardError)) and error.code not in UNCALLED
        if facts.code == error.code or (of_a_call and not returned):
            return
        if isinstance(error, NestedFlight):  # the call that asked for itself fails with it
            return
        if not returned:
            self._watch.called(facts)
        facts.code = self._checklist.classify(error).name
        self._watch.failed(facts, flight_id=error.flight_id)

    def _codes(self, facts: CallFacts, error: BaseException, provider: Provider) -> Sequence[Code]:
        """The failure's code; where the retries are used up, the last attempt's before it."""
        facts.fingerprint = facts.fingerprint or fingerprint(error)
        if facts.cause:
            return self._checklist.code(facts.cause), self._checklist.code(facts.code)
        code = self._checklist.classify(error, provider.name)
        facts.code = code.name
        return (code,)

    def _end(
        self, question: Question, facts: CallFacts, codes: Sequence[Code], error: BaseException
    ) -> BaseException:
        if isinstance(error, FallbackAnswer):
            facts.fallback_action = error.action
            if isinstance(error.value, dict):
                facts.warnings += error.value.get("warnings", ())
            return error
        if not isinstance(error, Exception):  # the process is told to end
            return error
        for code in codes:
            value = self._stand_in(question.place, code)
            if value is not None:
                facts.code, facts.fallback_action = code.name, code.fallback.action
                facts.warnings += value["warnings"]
                failure = checked(code, error)
                return FallbackAnswer(value, action=code.fallback.action, failure=failure)
        last = codes[-1]
        if last.fallback.action in ("refuse", "manual_review"):
            facts.fallback_action = last.fallback.action
        # a flight that found no place is given back as it was
        return error if isinstance(error, (Overloaded, SessionBusy)) else checked(last, error)

    def _stand_in(self, place: tuple[str, ...], code: Code) -> dict[str, Any] | None:
        if code.fallback.action != "last_good":
            return spoken(code, stage=place[1])
        if self._shared is None:
            return None
        max_age_s = float(code.fallback.params["max_age_s"])
        recalled = self._shared.last_good.recall(place, max_age_s)
        return stale(code, recalled) if recalled is not None else None

    def _tell(self, ctx: FlightContext, code: Code, provider: Provider, facts: CallFacts) -> None:
        """Count a failure, and let others hear of it."""
        self._watch.failed(
            facts if facts.code == code.name else replace(facts, code=code.name),
            flight_id=ctx.flight_id,
        )
        shared, module, failures = self._shared, f"stage:{facts.stage}", 1
        if shared is None:
            return
        if module in shared.modules.names:
            shared.counters.failed(module, code.name)
            failures = shared.counters.streak(module, code.name)
        event = _event(ctx, code, provider, facts, failures)
        if event is not None:
            shared.events.emit(event)


def _told(ctx: FlightContext) -> Told:
    role = Role.OWNER if ctx.fence else Role.LOCAL
    return Told(ctx.flight_id, ctx.fence, role.value)


def _event(
    ctx: FlightContext, code: Code, provider: Provider, facts: CallFacts, failures: int
) -> StateEvent | None:
    """The state change that this failure asks for, if it does."""
    known: dict[str, str | int] = {
        "tenant": facts.tenant,
        "session_id": facts.session_id,
        "trace_id": facts.trace_id,
        "input_hash": facts.input_hash,
        "fingerprint": facts.fingerprint,
        "flight_id": ctx.flight_id,
        "fence": ctx.fence,
        "failures": failures,
        "provider": provider.name,
        "model": provider.model,
    }
    if code.state is not None:
        return event_of(code, stage=facts.stage, **known) if failures >= code.state.after else None
    if code.fallback.action == "manual_review":  # who reviews must hear of it in any case
        return ReviewAsked(
            code=code.name,
            stage=facts.stage,
            tenant=facts.tenant,
            session_id=facts.session_id,
            trace_id=facts.trace_id,
            input_hash=facts.input_hash,
            fingerprint=facts.fingerprint,
            flight_id=ctx.flight_id,
            fence=ctx.fence,
            failures=failures,
            queue=str(code.fallback.params.get("queue", "")),
        )
    return None
