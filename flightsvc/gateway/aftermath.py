"""What follows a chat's guarded call: its line in the log, who hears of it, what is told."""

from __future__ import annotations

from dataclasses import replace

from flightsvc.checklist import Checklist, Code, fingerprint
from flightsvc.checklist.events import event_of
from flightsvc.errors import (
    CallFailed,
    CheckedFailure,
    FailureType,
    FallbackAnswer,
    FlightSvcError,
    GuardError,
    Overloaded,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
)
from flightsvc.facts import CallFacts, CallWatch
from flightsvc.flight.call import FlightContext
from flightsvc.flight.state import Role
from flightsvc.gateway.chat import STAGE
from flightsvc.guard import checked
from flightsvc.logs import Told, log_failure
from flightsvc.providers import ChatProvider
from flightsvc.store.shared import SharedState

#: What the model's service refuses because of the request itself; its word is passed on.
CLIENTS_FAULTS = {400, 404, 405, 409, 413, 415, 422}
#: Names, in a flight's answer, that it is the service's refusal.
REFUSED = "refused"
#: the code of a flight whose owners died one after the other: no worker is left to tell of it
OWNERS_LOST = "FLIGHT_OWNERS_LOST"


class Aftermath:
    """Does what the checklist says once a chat has failed. A client asked for one model's answer:
    nothing ever stands in for it.

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

    def succeeded(self) -> None:
        """The model answered."""
        shared, module = self._shared, f"stage:{STAGE}"
        if shared is not None and module in shared.modules.names:
            shared.counters.succeeded(module)

    def failed(
        self,
        ctx: FlightContext,
        provider: ChatProvider,
        facts: CallFacts,
        error: BaseException,
        *,
        duration_s: float,
    ) -> BaseException:
        """It failed, in whatever way.

        :returns: what the flight ends with.
        """
        codes = self._codes(facts, error, provider)
        log_failure(
            facts,
            Told(ctx.flight_id, ctx.fence, Role.OWNER if ctx.fence else Role.LOCAL),
            error,
            duration_s=duration_s,
            foreseen=codes[-1].failure_type is not FailureType.UNEXPECTED,
            content=self._content,
        )
        refused = _refusal(error)
        if refused is None:  # what one client did wrong is no sign of trouble for the others
            for each in codes:
                self._tell(ctx, each, provider, facts)
        if not isinstance(error, Exception) or isinstance(error, Overloaded):
            return error  # a full worker gives its flight back as it was
        # where retries are used up, clients hear what the last attempt failed with: that says more
        failure = checked(codes[0], error)
        failure.status = _status(error, failure)
        if refused is None or refused.upstream_error is None:
            return failure
        told = {"status": failure.status, "error": refused.upstream_error}
        return FallbackAnswer(told, action=REFUSED, failure=failure)

    def refused(self, facts: CallFacts, error: FlightSvcError, *, returned: bool) -> None:
        """Count what no call failed with: a caller that was turned away.

        :param returned: whether this caller's own call was made, and went well.
        """
        of_a_call = isinstance(error, (CallFailed, GuardError)) and error.code != OWNERS_LOST
        if facts.code == error.code or (of_a_call and not returned):
            return
        if not returned:
            self._watch.called(facts)
        facts.code = self._checklist.classify(error).name
        self._watch.failed(facts, flight_id=error.flight_id)

    def _codes(
        self, facts: CallFacts, error: BaseException, provider: ChatProvider
    ) -> tuple[Code, ...]:
        """The failure's code; where the retries are used up, the last attempt's before it."""
        facts.fingerprint = facts.fingerprint or fingerprint(error)
        if facts.cause:
            return self._checklist.code(facts.cause), self._checklist.code(facts.code)
        code = self._checklist.classify(error, provider.name)
        facts.code = code.name
        return (code,)

    def _tell(
        self, ctx: FlightContext, code: Code, provider: ChatProvider, facts: CallFacts
    ) -> None:
        """Count a failure, and let others hear of it."""
        self._watch.failed(
            facts if facts.code == code.name else replace(facts, code=code.name),
            flight_id=ctx.flight_id,
        )
        shared, module, failures = self._shared, f"stage:{STAGE}", 1
        if shared is None:
            return
        if module in shared.modules.names:
            shared.counters.failed(module, code.name)
            failures = shared.counters.streak(module, code.name)
        # a chat belongs to no session of ours that could change its state
        if code.state is None or code.state.kind != "rollback_model":
            return
        if failures < code.state.after:
            return
        event = event_of(
            code,
            stage=STAGE,
            tenant=facts.tenant,
            trace_id=facts.trace_id,
            input_hash=facts.input_hash,
            fingerprint=facts.fingerprint,
            flight_id=ctx.flight_id,
            fence=ctx.fence,
            failures=failures,
            provider=provider.name,
            model=provider.model,
        )
        if event is not None:
            shared.events.emit(event)


def _attempt_failure(error: BaseException) -> BaseException:
    """How the last attempt failed, where the error says only that retries are used up."""
    cause = error.__cause__
    return cause if isinstance(error, GuardError) and isinstance(cause, ProviderError) else error


def _refusal(error: BaseException) -> ProviderRejected | None:
    """The service's refusal of the request itself, if it is one."""
    if isinstance(error, ProviderRejected) and error.upstream_status in CLIENTS_FAULTS:
        return error
    return None


def _status(error: BaseException, failure: CheckedFailure) -> int:
    """The status that clients of OpenAI's API know such a failure by."""
    last = _attempt_failure(error)
    if isinstance(last, ProviderRateLimited):
        return 429
    refused = _refusal(last)
    if refused is not None and refused.upstream_status is not None:
        return refused.upstream_status
    return failure.status
