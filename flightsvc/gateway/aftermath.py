"""What follows a chat's guarded call: its line in the log, who hears of it, what is told."""

from __future__ import annotations

from collections.abc import Mapping

from flightsvc.aftermath import CallAftermath
from flightsvc.checklist import Code
from flightsvc.checklist.events import StateEvent
from flightsvc.errors import (
    CheckedFailure,
    FallbackAnswer,
    GuardError,
    Overloaded,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
)
from flightsvc.facts import CallFacts
from flightsvc.flight.call import FlightContext
from flightsvc.gateway.chat import STAGE
from flightsvc.guard import checked
from flightsvc.providers import ChatProvider

#: What the model's service refuses because of the request itself; its word is passed on.
CLIENTS_FAULTS = {400, 404, 405, 409, 413, 415, 422}
#: Names, in a flight's answer, that it is the service's refusal.
REFUSED = "refused"


class Aftermath(CallAftermath):
    """Does what the checklist says once a chat has failed. A client asked for one model's answer:
    nothing ever stands in for it."""

    def succeeded(self) -> None:
        """The model answered."""
        self._answered(STAGE)

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
        refused = _refusal(error)
        self._tell(
            ctx, codes, provider, facts, error, duration_s=duration_s,
            silent=refused is not None,  # what one client did wrong is no trouble of the others
        )  # fmt: skip
        if not isinstance(error, Exception) or isinstance(error, Overloaded):
            return error  # a full worker gives its flight back as it was
        # where retries are used up, clients hear what the last attempt failed with: that says more
        failure = checked(codes[0], error)
        failure.status = _status(error, failure)
        if refused is None or refused.upstream_error is None:
            return failure
        told = {"status": failure.status, "error": refused.upstream_error}
        return FallbackAnswer(told, action=REFUSED, failure=failure)

    def _event(
        self, code: Code, stage: str, known: Mapping[str, str | int], failures: int
    ) -> StateEvent | None:
        # a chat belongs to no session of ours that could change its state
        if code.state is None or code.state.kind != "rollback_model":
            return None
        return super()._event(code, stage, known, failures)


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
