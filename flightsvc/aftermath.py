"""What follows a failed call, whoever asked: its codes, its line in the log, who hears of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from flightsvc.checklist import Checklist, Code, fingerprint
from flightsvc.checklist.events import StateEvent, event_of
from flightsvc.errors import CallFailed, FailureType, FlightSvcError, GuardError, NestedFlight
from flightsvc.facts import CallFacts, CallWatch
from flightsvc.flight.call import FlightContext
from flightsvc.flight.state import Role
from flightsvc.logs import Told, log_failure
from flightsvc.store.shared import SharedState

#: codes of flights that no call failed with: the owners died one after the other, or Redis did not
#: take the answer; who is told of it counts it
UNCALLED = ("FLIGHT_OWNERS_LOST", "RESULT_NOT_STORED")


class Model(Protocol):
    """What was asked."""

    @property
    def name(self) -> str:
        """Its provider."""

    @property
    def model(self) -> str:
        """The model that the settings name."""


class CallAftermath:
    """Does what the checklist says once a call has ended, as far as that is the same for all.

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

    def _answered(self, stage: str) -> None:
        """Count that the model answered."""
        shared, module = self._shared, f"stage:{stage}"
        if shared is not None and module in shared.modules.names:
            shared.counters.succeeded(module)

    def _codes(self, facts: CallFacts, error: BaseException, model: Model) -> Sequence[Code]:
        """The failure's code; where the retries are used up, the last attempt's before it."""
        facts.fingerprint = facts.fingerprint or fingerprint(error)
        if facts.cause:
            return self._checklist.code(facts.cause), self._checklist.code(facts.code)
        code = self._checklist.classify(error, model.name)
        facts.code = code.name
        return (code,)

    def _tell(
        self,
        ctx: FlightContext,
        codes: Sequence[Code],
        model: Model,
        facts: CallFacts,
        error: BaseException,
        *,
        duration_s: float,
        silent: bool = False,
    ) -> None:
        """Log a failure, count it, and let others hear of it.

        :param codes: all that it came to, the last one last.
        :param silent: only the log is told.
        """
        role = Role.OWNER if ctx.fence else Role.LOCAL
        log_failure(
            facts,
            Told(ctx.flight_id, ctx.fence, role.value),
            error,
            duration_s=duration_s,
            foreseen=codes[-1].failure_type is not FailureType.UNEXPECTED,
            content=self._content,
        )
        for code in () if silent else codes:
            self._count(ctx, code, model, facts)

    def _count(self, ctx: FlightContext, code: Code, model: Model, facts: CallFacts) -> None:
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
        known: dict[str, str | int] = {
            "tenant": facts.tenant,
            "session_id": facts.session_id,
            "trace_id": facts.trace_id,
            "input_hash": facts.input_hash,
            "fingerprint": facts.fingerprint,
            "flight_id": ctx.flight_id,
            "fence": ctx.fence,
            "failures": failures,
            "provider": model.name,
            "model": model.model,
        }
        event = self._event(code, facts.stage, known, failures)
        if event is not None:
            shared.events.emit(event)

    def _event(
        self, code: Code, stage: str, known: Mapping[str, str | int], failures: int
    ) -> StateEvent | None:
        """The state change that a failure asks for, if it does.

        :param known: what an event can say, but for what the list does.
        :param failures: how often it came in a row.
        """
        if code.state is None or failures < code.state.after:
            return None
        return event_of(code, stage=stage, **known)
