"""The one way in which the interview asks a model (first article: `InterviewAiInvoker`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from gevent import GreenletExit

from flightsvc.checklist import Code
from flightsvc.errors import FlightSvcError, ModulePaused, SkipRetry
from flightsvc.facts import CallFacts, CallWatch, Unwatched
from flightsvc.flight.call import FlightContext
from flightsvc.flight.key import FlightKey
from flightsvc.flight.result import FlightResult
from flightsvc.flight.service import SingleFlight
from flightsvc.guard import AiCallGuard, Route, Routes, Target
from flightsvc.interview import evaluation
from flightsvc.interview.aftermath import Aftermath
from flightsvc.interview.question import Ask, Question
from flightsvc.interview.standins import SMALLER, TRUNCATED, marked
from flightsvc.providers.base import Message, ModelAnswer, ModelRequest, Provider
from flightsvc.providers.models import Models
from flightsvc.settings import Settings
from flightsvc.store.shared import SharedState
from flightsvc.tracing import TraceContext

#: what a caller of a paused module is told to wait, in s
PAUSED_RETRY_AFTER_S = 30.0

BeforeRetry = Callable[[CallFacts], None]


class InterviewAiInvoker:
    """Builds the flight key of a business question and the one guarded call behind it.

    The single flight says *whether* the model is called; the guard says *how*, and the checklist
    what happens if it fails; the provider does it. All are handed in, made once a worker.

    :param models: the model that is asked, alone or with those that may stand in.
    :param watch: hears of every call and of how it failed.
    :param shared: what all workers share; None: this worker alone, and nothing can be paused.
    :param before_retry: gets the facts of a call before it is made again; raises
        :class:`SkipRetry` if what it was for no longer stands.
    """

    def __init__(
        self,
        settings: Settings,
        flights: SingleFlight,
        guard: AiCallGuard,
        models: Models | Provider,
        watch: CallWatch | None = None,
        *,
        shared: SharedState | None = None,
        before_retry: BeforeRetry | None = None,
    ) -> None:
        self._settings = settings
        self._flights = flights
        self._guard = guard
        self._models = models if isinstance(models, Models) else Models(models)
        self._watch = watch or Unwatched()
        self._shared = shared
        self._before_retry = before_retry
        self._aftermath = Aftermath(
            guard.checklist, shared, self._watch, content=settings.log_content
        )

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
        :returns: a result whose value has the fields of ``EvaluationAnswer``; if its ``fallback``
            is set, those of :mod:`flightsvc.interview.standins`.
        :raises ModulePaused: the stage or the provider is paused.
        :raises CallFailed: the model could not be asked, or its answer does not fit.
        :raises WaitTimeout: no answer within the stage's patience; the call goes on.
        :raises FlightSvcError: this worker takes no callers now, or Redis is needed and gone.
        """
        stage = evaluation.STAGE
        provider = self._asked(stage)
        trace, facts = trace or TraceContext.new(), facts or CallFacts()
        facts.trace_id, facts.session_id, facts.tenant = trace.trace_id, session_id, tenant
        _note_input(facts, stage, asked.question, asked.answer, asked.resume_context)
        key = evaluation.flight_key(
            session_id, asked, tenant=tenant, provider=provider.name, model=provider.model
        )

        def judging(asked: evaluation.EvaluationInput) -> Ask:
            def judge(provider: Provider, timeout_s: float) -> dict[str, Any]:
                prompt = evaluation.messages(asked)
                headers = trace.child().headers
                return evaluation.read_answer(
                    self._complete(provider, stage, prompt, timeout_s, headers)
                )

            return judge

        def shorter(most: int, marker: str) -> Ask | None:
            cut = evaluation.shortened(asked, most, marker)
            return judging(cut) if cut != asked else None

        place = (tenant, stage, session_id, str(asked.question_number))
        return self._once(key, Question(stage, place, judging(asked), shorter), provider, facts)

    def _asked(self, stage: str) -> Provider:
        """Whom a stage asks now.

        :raises ModulePaused: nobody.
        """
        if self._shared is None:
            return self._models.primary
        watch = self._shared.watch
        provider = self._models.for_stage(rolled_back=watch.rolled_back(stage) is not None)
        pause = watch.paused(stage, provider.name)
        if pause is not None:
            raise ModulePaused(retry_after_s=PAUSED_RETRY_AFTER_S)
        return provider

    def _once(
        self, key: FlightKey, question: Question, provider: Provider, facts: CallFacts
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
                    question.stage,
                    self._routes(question, provider),
                    facts=facts,
                    on_admitted=ctx.mark_running,
                    before_retry=lambda: self._check_wanted(ctx, facts),
                )
            except GreenletExit:  # another owner has the flight, or nobody wants it any more
                raise
            except BaseException as error:  # nobody who waits is told more than the code
                took_s = time.monotonic() - began
                end = self._aftermath.failed(
                    ctx, question, provider, facts, error, duration_s=took_s
                )
                raise end from end.__cause__
            self._aftermath.succeeded(question, value)
            returned = True
            return value

        try:
            return self._flights.run(key, guarded, queued=True)
        except FlightSvcError as error:
            self._aftermath.refused(facts, error, returned=returned)
            raise

    def _routes(self, question: Question, provider: Provider) -> Routes[dict[str, Any]]:
        """Whom to ask, and whom instead, as the failure's code says."""

        def instead(code: Code) -> Route[dict[str, Any]] | None:
            action, params, smaller = (
                code.fallback.action,
                code.fallback.params,
                self._models.smaller,
            )
            if action == "smaller_model" and smaller is not None and smaller is not provider:
                return _route(smaller, question.ask, code, SMALLER)
            if action == "truncate":
                marker = str(params.get("marker", "[TRUNCATED]"))
                cut = question.shorter(int(params["max_tokens"]), marker)
                return _route(provider, cut, code, TRUNCATED) if cut is not None else None
            return None

        return Routes(Route(_target(provider), lambda s: question.ask(provider, s)), instead)

    def _check_wanted(self, ctx: FlightContext, facts: CallFacts) -> None:
        if ctx.cancelled.is_set():
            raise SkipRetry
        if self._before_retry is not None:
            self._before_retry(facts)

    def _complete(
        self,
        provider: Provider,
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
        return provider.complete(request, timeout_s)


def _target(provider: Provider) -> Target:
    return Target(provider.name, provider.model)


def _route(provider: Provider, ask: Ask, code: Code, warning: str) -> Route[dict[str, Any]]:
    """A fallback route, whose answers say that they are from there."""
    tell = warning == TRUNCATED

    def attempt(timeout_s: float) -> dict[str, Any]:
        return marked(code, ask(provider, timeout_s), warning, tell=tell)

    return Route(_target(provider), attempt)


def _note_input(facts: CallFacts, stage: str, *texts: str) -> None:
    """What may be known of an input without knowing it."""
    facts.stage = stage
    facts.input_length = sum(map(len, texts))
    # each length first, so that no two inputs run together
    whole = "".join(f"{len(text)}:{text}" for text in texts)
    facts.input_hash = sha256(whole.encode()).hexdigest()[:32]
