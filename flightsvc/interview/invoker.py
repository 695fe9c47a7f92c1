"""The one way in which the interview asks a model (first article: `InterviewAiInvoker`)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from flightsvc.errors import FlightSvcError
from flightsvc.flight.call import FlightContext
from flightsvc.flight.key import FlightKey
from flightsvc.flight.result import FlightResult
from flightsvc.flight.service import SingleFlight
from flightsvc.guard import AiCallGuard, Target
from flightsvc.interview import evaluation
from flightsvc.logs import stack_of
from flightsvc.providers.base import Message, ModelAnswer, ModelRequest, Provider
from flightsvc.settings import Settings

log = logging.getLogger(__name__)


class InterviewAiInvoker:
    """Builds the flight key of a business question and the one guarded call behind it.

    The single flight says *whether* the model is called; the guard says *how*; the provider does
    it. All three are handed in, made once a worker.
    """

    def __init__(
        self, settings: Settings, flights: SingleFlight, guard: AiCallGuard, provider: Provider
    ) -> None:
        self._settings = settings
        self._flights = flights
        self._guard = guard
        self._provider = provider
        self._target = Target(provider.name, provider.model)

    def evaluate(
        self, session_id: str, asked: evaluation.EvaluationInput, *, tenant: str = ""
    ) -> FlightResult:
        """Judge one answer; the same question asked again, anywhere, is the same flight.

        :param session_id: the interview.
        :param asked: question, answer and context.
        :param tenant: whose interview it is.
        :returns: a result whose value has the fields of ``EvaluationAnswer``.
        :raises CallFailed: the model could not be asked, or its answer does not fit.
        :raises WaitTimeout: no answer within the stage's patience; the call goes on.
        :raises FlightSvcError: this worker takes no callers now, or Redis is needed and gone.
        """
        provider = self._provider
        key = evaluation.flight_key(
            session_id, asked, tenant=tenant, provider=provider.name, model=provider.model
        )

        def judge(timeout_s: float) -> dict[str, Any]:
            answer = self._complete(evaluation.STAGE, evaluation.messages(asked), timeout_s)
            return evaluation.read_answer(answer)

        return self._once(evaluation.STAGE, key, judge)

    def _once(self, stage: str, key: FlightKey, attempt: Callable[[float], Any]) -> FlightResult:
        """One guarded call for all who ask this key; it runs in the flight's own greenlet."""

        def guarded(ctx: FlightContext) -> Any:
            try:
                return self._guard.execute(
                    stage, self._target, attempt, on_admitted=ctx.mark_running
                )
            except FlightSvcError:
                raise
            except Exception as error:  # nobody who waits is told more than that it failed
                log.error("unexpected error in flight %s\n%s", ctx.flight_id, stack_of(error))
                raise

        return self._flights.run(key, guarded, queued=True)

    def _complete(self, stage: str, messages: tuple[Message, ...], timeout_s: float) -> ModelAnswer:
        """One attempt of one model call, for a JSON answer."""
        between_bytes_s = self._settings.stage(stage).between_bytes_ms / 1000
        request = ModelRequest(
            messages=messages, stage=stage, json_answer=True, between_bytes_s=between_bytes_s
        )
        return self._provider.complete(request, timeout_s)
