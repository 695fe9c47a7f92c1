"""What follows a question's guarded call: its stand-in, its line in the log, who hears of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flightsvc.aftermath import CallAftermath
from flightsvc.checklist import Checklist, Code, fingerprint
from flightsvc.checklist.events import ReviewAsked, StateEvent, read_event
from flightsvc.errors import (
    BudgetExhausted,
    CallFailed,
    FallbackAnswer,
    FlightSvcError,
    Overloaded,
    SessionBusy,
    SessionForgotten,
)
from flightsvc.facts import CallFacts, CallWatch
from flightsvc.flight.call import FlightContext
from flightsvc.flight.result import FlightResult
from flightsvc.guard import checked
from flightsvc.interview.keeping import Keeping
from flightsvc.interview.question import Question
from flightsvc.interview.standins import spoken, stale
from flightsvc.providers.base import Provider
from flightsvc.store.shared import SharedState

GIVEN_BACK = (Overloaded, SessionBusy, SessionForgotten)


class Aftermath(CallAftermath):
    """Does what the checklist says once a question's call has ended. Never waits for Redis, but to
    find an older answer.

    :param keeping: knows which sessions were deleted.
    """

    def __init__(
        self,
        checklist: Checklist,
        shared: SharedState | None,
        watch: CallWatch,
        keeping: Keeping,
        *,
        content: bool,
    ) -> None:
        super().__init__(checklist, shared, watch, content=content)
        self._keeping = keeping

    def succeeded(self, question: Question, value: dict[str, Any]) -> None:
        """The primary route answered."""
        self._answered(question.stage)
        if self._shared is not None:
            self._shared.last_good.remember(question.place, value)

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
        self._tell(ctx, codes, provider, facts, error, duration_s=duration_s)
        return end

    def overdue(
        self, ctx: FlightContext, provider: Provider, facts: CallFacts, *, duration_s: float
    ) -> None:
        """It was stopped, for it did not end within its flight's time; who waits has been told."""
        error = BudgetExhausted()
        code = self._checklist.classify(error, provider.name)
        facts.code, facts.cause, facts.fallback_action = code.name, "", ""
        facts.fingerprint = fingerprint(error)
        self._tell(ctx, (code,), provider, facts, error, duration_s=duration_s)

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
        # a flight that found no place, or that nobody wants, is given back as it was
        return error if isinstance(error, GIVEN_BACK) else checked(last, error)

    def _stand_in(self, place: tuple[str, ...], code: Code) -> dict[str, Any] | None:
        if code.fallback.action != "last_good":
            return spoken(code, stage=place[1])
        if self._shared is None:
            return None
        max_age_s = float(code.fallback.params["max_age_s"])
        recalled = self._shared.last_good.recall(place, max_age_s)
        if recalled is None or self._is_of_a_deleted_session(place, recalled.age_s):
            return None
        return stale(code, recalled)

    def _is_of_a_deleted_session(self, place: tuple[str, ...], age_s: float) -> bool:
        return len(place) > 2 and self._keeping.deleted_within(place[0], place[2], age_s)

    def _event(
        self, code: Code, stage: str, known: Mapping[str, str | int], failures: int
    ) -> StateEvent | None:
        if code.state is None and code.fallback.action == "manual_review":
            # who reviews must hear of it in any case
            queue = code.fallback.params.get("queue", "")
            said = {**known, "stage": stage, "code": code.name, "queue": queue}
            texts = {name: str(value) for name, value in said.items()}
            return read_event({**texts, "kind": ReviewAsked.kind})
        return super()._event(code, stage, known, failures)
