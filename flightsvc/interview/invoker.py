"""The one way in which the interview asks a model (first article: `InterviewAiInvoker`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from gevent import GreenletExit

from flightsvc.errors import CallFailed, FailureType, FallbackAnswer, FlightSvcError, GuardError
from flightsvc.facts import CallFacts, CallWatch, Unwatched
from flightsvc.flight.call import FlightContext
from flightsvc.flight.key import FlightKey
from flightsvc.flight.result import FlightResult
from flightsvc.flight.service import SingleFlight
from flightsvc.flight.state import Failure, Role
from flightsvc.guard import AiCallGuard, Target
from flightsvc.interview import evaluation
from flightsvc.logs import Told, log_failure
from flightsvc.providers.base import Message, ModelAnswer, ModelRequest, Provider
from flightsvc.settings import Settings
from flightsvc.tracing import TraceContext

#: the code of a flight whose owners died one after the other: no worker is left to tell of it
OWNERS_LOST = "FLIGHT_OWNERS_LOST"


class InterviewAiInvoker:
    """Builds the flight key of a business question and the one guarded call behind it.

    The single flight says *whether* the model is called; the guard says *how*; the provider does
    it. All three are handed in, made once a worker.

    :param watch: hears of every call and of how it failed.
    """

    def __init__(
        self,
        settings: Settings,
        flights: SingleFlight,
        guard: AiCallGuard,
        provider: Provider,
        watch: CallWatch | None = None,
    ) -> None:
        self._settings = settings
        self._flights = flights
        self._guard = guard
        self._provider = provider
        self._watch = watch or Unwatched()
        self._target = Target(provider.name, provider.model)

    def evaluate(
        self,
        session_id: str,
        asked: evaluation.EvaluationInput,
        *,
        tenant: str = "",
        trace: TraceContext | None = None,
        facts: CallFacts | None = None,
    ) -> FlightResult:
        """Judge one answer; the same question asked again, anywhere, is the same flight.

        :param session_id: the interview.
        :param asked: question, answer and context.
        :param tenant: whose interview it is.
        :param trace: the caller's place in its trace; None: a new trace.
        :param facts: filled in with what becomes known of the call, if this caller begins it.
        :returns: a result whose value has the fields of ``EvaluationAnswer``.
        :raises CallFailed: the model could not be asked, or its answer does not fit.
        :raises WaitTimeout: no answer within the stage's patience; the call goes on.
        :raises FlightSvcError: this worker takes no callers now, or Redis is needed and gone.
        """
        provider = self._provider
        key = evaluation.flight_key(
            session_id, asked, tenant=tenant, provider=provider.name, model=provider.model
        )

        trace, facts = trace or TraceContext.new(), facts or CallFacts()
        facts.trace_id, facts.session_id, facts.tenant = trace.trace_id, session_id, tenant
        _note_input(facts, evaluation.STAGE, asked.question, asked.answer, asked.resume_context)

        def judge(timeout_s: float) -> dict[str, Any]:
            prompt = evaluation.messages(asked)
            answer = self._complete(evaluation.STAGE, prompt, timeout_s, trace.child().headers)
            return evaluation.read_answer(answer)

        return self._once(evaluation.STAGE, key, judge, facts)

    def _once(
        self, stage: str, key: FlightKey, attempt: Callable[[float], Any], facts: CallFacts
    ) -> FlightResult:
        """One guarded call for all who ask this key; it runs in the flight's own greenlet.

        :param facts: of this caller, plain values: its request may be over before the call is.
        """

        returned = False

        def guarded(ctx: FlightContext) -> Any:
            nonlocal returned
            began = time.monotonic()
            self._watch.called(facts)
            try:
                value = self._guard.execute(
                    stage, self._target, attempt, on_admitted=ctx.mark_running
                )
            except GreenletExit:  # another owner has the flight, or nobody wants it any more
                raise
            except BaseException as error:  # nobody who waits is told more than that it failed
                self._tell_failure(ctx, facts, error, time.monotonic() - began)
                raise
            returned = True
            return value

        try:
            return self._flights.run(key, guarded, queued=True)
        except FlightSvcError as error:
            self._count_refusal(facts, error, returned=returned)
            raise

    def _count_refusal(self, facts: CallFacts, error: FlightSvcError, *, returned: bool) -> None:
        """Count what no call failed with: a caller that was turned away, a result that could not
        be kept. A call's failure is counted where the call was made, once.

        :param returned: whether this caller's own call was made, and went well.
        """
        of_a_call = isinstance(error, (CallFailed, GuardError)) and error.code != OWNERS_LOST
        if of_a_call and not returned:
            return
        if not returned:
            self._watch.called(facts)
        facts.code = error.code
        self._watch.failed(facts, flight_id=error.flight_id)

    def _tell_failure(
        self, ctx: FlightContext, facts: CallFacts, error: BaseException, duration_s: float
    ) -> None:
        """Log a call's failure and count it, once, in the worker that made the call."""
        failure = Failure.of(error)
        facts.code = facts.code or failure.code
        if isinstance(error, FallbackAnswer):
            facts.fallback_action = facts.fallback_action or error.action
        log_failure(
            facts,
            Told(ctx.flight_id, ctx.fence, Role.OWNER if ctx.fence else Role.LOCAL),
            error,
            duration_s=duration_s,
            foreseen=failure.error_type is not FailureType.UNEXPECTED,
            content=self._settings.log_content,
        )
        self._watch.failed(facts, flight_id=ctx.flight_id)

    def _complete(
        self,
        stage: str,
        messages: tuple[Message, ...],
        timeout_s: float,
        trace_headers: Mapping[str, str],
    ) -> ModelAnswer:
        """One attempt of one model call, for a JSON answer."""
        between_bytes_s = self._settings.stage(stage).between_bytes_ms / 1000
        request = ModelRequest(
            messages=messages,
            stage=stage,
            json_answer=True,
            between_bytes_s=between_bytes_s,
            trace_headers=trace_headers,
        )
        return self._provider.complete(request, timeout_s)


def _note_input(facts: CallFacts, stage: str, *texts: str) -> None:
    """What may be known of an input without knowing it."""
    facts.stage = stage
    facts.input_length = sum(map(len, texts))
    # each length first, so that no two inputs run together
    whole = "".join(f"{len(text)}:{text}" for text in texts)
    facts.input_hash = sha256(whole.encode()).hexdigest()[:32]
