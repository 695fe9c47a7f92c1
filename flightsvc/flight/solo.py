"""Flying a flight without Redis: the answer is this worker's alone."""

from __future__ import annotations

from flightsvc.errors import Draining, FallbackAnswer, ResultRejected, WaitTimeout
from flightsvc.flight.call import Adopted, CallRun, Raised, Returned, Signal
from flightsvc.flight.local import LocalFlight
from flightsvc.flight.serializer import ResultSerializer
from flightsvc.flight.state import Crashed, End, Failure, Landed, Role
from flightsvc.metrics import FLIGHT_ENDS, Metrics
from flightsvc.settings import Settings


class SoloPilot:
    """Makes calls that no other worker knows of."""

    def __init__(self, serializer: ResultSerializer, settings: Settings, metrics: Metrics) -> None:
        self._serializer = serializer
        self._settings = settings
        self._metrics = metrics

    def fly(self, flight: LocalFlight) -> End:
        """Make the call where Redis has no part in it at all (mode ``local``)."""
        run = CallRun(flight, lambda _own: None)
        with run.flying(self._metrics):
            end = self.go_on(run)
        if isinstance(end, Adopted):
            raise RuntimeError("an ownership came to a flight that has no Redis")
        return end

    def go_on(self, run: CallRun) -> End | Adopted:
        """Bring a call that has begun to its end, or to an ownership that came after all."""
        while True:
            news = run.next_news(run.limit(self._settings))
            if isinstance(news, Adopted):
                return news
            if news is not Signal.UNWANTED or run.flight.unwanted:
                break
        if isinstance(news, Returned):
            run.whole(0)
        end = self._end_of(news)
        outcome = "abandoned" if news is Signal.UNWANTED else _outcome(end)
        self._metrics.count(FLIGHT_ENDS, stage=run.flight.key.stage, outcome=outcome)
        return end

    def _end_of(self, news: object) -> End:
        try:
            if isinstance(news, Returned):
                return Landed(self._serializer.freeze(news.value), Role.LOCAL, 0)
            if isinstance(news, Raised) and isinstance(news.error, FallbackAnswer):
                payload = self._serializer.freeze(news.error.value)
                return Landed(payload, Role.LOCAL, 0, news.error.action)
        except ResultRejected as error:
            return Crashed(Failure.of(error), cause=error)
        if isinstance(news, Raised):
            return Crashed(Failure.of(news.error), cause=news.error)
        if news is Signal.UNWANTED:
            return Crashed.as_is(WaitTimeout())  # nobody is left to hear it
        return Crashed.as_is(Draining(retry_after_s=1))


def _outcome(end: End) -> str:
    return "local" if isinstance(end, Landed) and end.fallback is None else "failed"
