"""The one way in which the interview asks a model (first article: `InterviewAiInvoker`)."""

from __future__ import annotations

from flightsvc.errors import ModulePaused
from flightsvc.facts import CallFacts, CallWatch, Unwatched
from flightsvc.flight.result import FlightResult
from flightsvc.flight.service import SingleFlight
from flightsvc.flight.state import Failure, FlightView
from flightsvc.guard import AiCallGuard
from flightsvc.interview import demeanor, evaluation, extraction, follow_up
from flightsvc.interview.aftermath import Aftermath
from flightsvc.interview.asked import AskedQuestion
from flightsvc.interview.keeping import Keeping
from flightsvc.interview.progress import Progress
from flightsvc.interview.refresh import Refresher
from flightsvc.interview.stage import In, Stage, StageFiles
from flightsvc.interview.tools import BeforeRetry, Tools
from flightsvc.providers.base import Provider
from flightsvc.providers.models import Models
from flightsvc.records import Records
from flightsvc.settings import Settings
from flightsvc.store.shared import SharedState
from flightsvc.tracing import TraceContext

#: what a caller of a paused module is told to wait, in s
PAUSED_RETRY_AFTER_S = 30.0

__all__ = ["BeforeRetry", "InterviewAiInvoker"]


class InterviewAiInvoker:
    """Builds the flight key of a business question and the one guarded call behind it.

    The single flight says *whether* the model is called; the guard says *how*, and the checklist
    what happens if it fails; the provider does it. All are handed in, made once a worker.

    :param models: the model that is asked, alone or with those that may stand in.
    :param watch: hears of every call and of how it failed.
    :param shared: what all workers share; None: this worker alone, and nothing can be paused.
    :param before_retry: gets the facts of a call before it is made again; raises
        :class:`SkipRetry` if what it was for no longer stands.
    :param files: what extraction and demeanor are about; None: this invoker is not asked those.
    :param records: where answers are kept as rows; None: they are not.
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
        files: StageFiles | None = None,
        records: Records | None = None,
    ) -> None:
        watch = watch or Unwatched()
        self._shared = shared
        self._models = models if isinstance(models, Models) else Models(models)
        self.keeping = Keeping(records, shared)
        aftermath = Aftermath(
            guard.checklist, shared, watch, self.keeping, content=settings.log_content
        )
        self._tools = Tools(
            settings=settings,
            flights=flights,
            guard=guard,
            models=self._models,
            watch=watch,
            aftermath=aftermath,
            keeping=self.keeping,
            progress=Progress(),
            refresher=Refresher(),
            files=files,
            before_retry=before_retry,
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
        """Judge one answer; see :meth:`question` and :meth:`AskedQuestion.answer`.

        :returns: a value with the fields of ``EvaluationAnswer``; if the result's ``fallback`` is
            set, those of :mod:`flightsvc.interview.standins`.
        """
        return self.question(evaluation, session_id, asked, tenant=tenant).answer(trace, facts)

    def follow_up(
        self,
        session_id: str,
        asked: follow_up.FollowUpInput,
        *,
        tenant: str = "",
        trace: TraceContext | None = None,
        facts: CallFacts | None = None,
    ) -> FlightResult:
        """Decide on a further question; as :meth:`evaluate`, with ``FollowUpAnswer``."""
        return self.question(follow_up, session_id, asked, tenant=tenant).answer(trace, facts)

    def extract(
        self,
        session_id: str,
        asked: extraction.ExtractionInput,
        *,
        tenant: str = "",
        trace: TraceContext | None = None,
        facts: CallFacts | None = None,
    ) -> FlightResult:
        """Make questions from a résumé; as :meth:`evaluate`, with ``ExtractionAnswer``."""
        return self.question(extraction, session_id, asked, tenant=tenant).answer(trace, facts)

    def assess_demeanor(
        self,
        session_id: str,
        asked: demeanor.DemeanorInput,
        *,
        tenant: str = "",
        trace: TraceContext | None = None,
        facts: CallFacts | None = None,
    ) -> FlightResult:
        """Judge a picture; as :meth:`evaluate`, with ``DemeanorAnswer``."""
        return self.question(demeanor, session_id, asked, tenant=tenant).answer(trace, facts)

    def question(
        self, stage: Stage[In], session_id: str, asked: In, *, tenant: str = ""
    ) -> AskedQuestion[In]:
        """A question, ready to be asked; asked again, anywhere, it is the same flight.

        :param stage: its kind: one of the modules beside this one.
        :param session_id: the interview.
        :param asked: what is asked, as the stage's own class.
        :param tenant: whose interview it is.
        :raises ModulePaused: the stage or the provider is paused.
        """
        provider = self._asked(stage.STAGE)
        question = AskedQuestion(self._tools, stage, session_id, asked, tenant, provider)
        question.anew = lambda: self.question(stage, session_id, asked, tenant=tenant)
        return question

    def fetched(self, view: FlightView, failure: Failure, session_id: str) -> FlightResult:
        """What a flight that failed has in an answer's place: what those who waited were told, and
        once that is forgotten, what the checklist has for everybody.

        :param failure: what it ended with.
        :param session_id: whose question it was.
        :raises SessionForgotten: the session was deleted since.
        :raises CallFailed: nothing stands in.
        :raises CoordinationUnavailable: Redis does not answer.
        """
        self.keeping.check_wanted(view.tenant, session_id, view.fence)
        told = self._tools.flights.stand_in(view)
        if told is None:
            error = failure.error(view.flight_id, view.fence)
            told = self._tools.aftermath.again((view.tenant, view.stage), error)
            if told is None:
                raise error
        return told

    def _asked(self, stage: str) -> Provider:
        """Whom a stage asks now.

        :raises ModulePaused: nobody.
        """
        if self._shared is None:
            return self._models.for_stage(stage)
        watch = self._shared.watch
        provider = self._models.for_stage(stage, rolled_back=watch.rolled_back(stage) is not None)
        pause = watch.paused(stage, provider.name)
        if pause is not None:
            raise ModulePaused(retry_after_s=PAUSED_RETRY_AFTER_S)
        return provider
