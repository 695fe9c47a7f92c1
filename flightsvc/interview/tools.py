"""What every question of the interview is asked with; made once a worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flightsvc.facts import CallFacts, CallWatch
from flightsvc.flight.service import SingleFlight
from flightsvc.guard import AiCallGuard
from flightsvc.interview.aftermath import Aftermath
from flightsvc.interview.keeping import Keeping
from flightsvc.interview.progress import Progress
from flightsvc.interview.refresh import Refresher
from flightsvc.interview.stage import StageFiles
from flightsvc.providers.models import Models
from flightsvc.settings import Settings

BeforeRetry = Callable[[CallFacts], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """See :class:`~flightsvc.interview.invoker.InterviewAiInvoker`."""

    settings: Settings
    flights: SingleFlight
    guard: AiCallGuard
    models: Models
    watch: CallWatch
    aftermath: Aftermath
    keeping: Keeping
    progress: Progress
    refresher: Refresher
    files: StageFiles | None
    before_retry: BeforeRetry | None
