"""Flying a flight under an ownership: the one call, its heartbeat, and one fenced end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from gevent.hub import get_hub

from flightsvc.errors import (
    CoordinationUnavailable,
    Draining,
    FailureType,
    FallbackAnswer,
    FlightSvcError,
    Overloaded,
    ResultRejected,
    SessionBusy,
    SessionForgotten,
    WaitTimeout,
)
from flightsvc.flight.call import CallRun, News, Raised, Returned, Signal
from flightsvc.flight.coordinator import Ask, FlightCoordinator, Ownership
from flightsvc.flight.emitting import Outbox
from flightsvc.flight.fallback import pack_fallback
from flightsvc.flight.heartbeat import HeartbeatManager
from flightsvc.flight.local import LocalFlight
from flightsvc.flight.serializer import Envelope, Payload, ResultSerializer
from flightsvc.flight.state import Ack, Crashed, End, Failure, Landed, Role
from flightsvc.metrics import FLIGHT_ENDS, FLIGHT_LOST, FLIGHT_RESULT_BYTES, Metrics
from flightsvc.settings import Settings
from flightsvc.store import StoreError

log = logging.getLogger(__name__)

#: Time in seconds between two tries to tell Redis an end.
REPEAT_S = 0.5

#: Answers of this many bytes are compressed in a thread, so that the others need not wait.
PACK_ELSEWHERE = 256 * 1024

NOT_STORED = Failure(FailureType.UNEXPECTED, "RESULT_NOT_STORED", True, 503)


class FlightOwner:
    """Makes the calls that Redis granted to this worker.

    Where an end cannot be told to Redis, the worker's own waiters have it at once, and it is
    repeated as long as the lease can live: coordination failed, not the call.
    """

    def __init__(
        self,
        coordinator: FlightCoordinator,
        heartbeat: HeartbeatManager,
        serializer: ResultSerializer,
        settings: Settings,
        metrics: Metrics,
        draining: Callable[[], bool],
    ) -> None:
        self._coordinator = coordinator
        self._draining = draining
        self._heartbeat = heartbeat
        self._serializer = serializer
        self._settings = settings
        self._metrics = metrics

    def fly(self, flight: LocalFlight, own: Ownership) -> End | None:
        """Make the call and end the flight.

        :returns: the end; or None if another worker has the flight now: ask again.
        """
        run = CallRun(flight, self.on_running)
        run.own = own
        with run.flying(self._metrics):
            return self.go_on(run, own)

    def go_on(self, run: CallRun, own: Ownership) -> End | None:
        """Bring a call that has begun to its end, under an ownership."""
        limit = run.limit(self._settings)
        self._open_outbox(run, own)
        with self._heartbeat.keep(own, run.tell, lambda: run.flight.unwanted):
            while True:
                news = run.next_news(limit)
                if isinstance(news, Returned):
                    return self._land(run, own, news.value)
                if isinstance(news, Raised):
                    return self._crash(run, own, news.error)
                if news is Signal.LOST and self._regain(run, own):
                    continue
                if news is Signal.UNWANTED:
                    end = self._abandon(run, own)
                    if end is None:
                        continue
                    return end
                if news in (Signal.LOST, Signal.STALE):
                    return self._lost(run, Ack[news.name])
                return self._let_go(run, own, news)

    def on_running(self, own: Ownership) -> Signal | None:
        """Tell Redis that the model is about to be asked.

        :returns: what the flight must hear, if it is no longer its worker's.
        """
        try:
            ack = self._coordinator.mark_running(own)
        except StoreError:
            return None  # coordination failed, not the call: it goes on
        return None if ack is Ack.OK else Signal[ack.name]

    # -- the call ended --------------------------------------------------------------------

    def _land(self, run: CallRun, own: Ownership, value: object) -> End | None:
        try:
            payload = self._serializer.freeze(value)
        except ResultRejected as error:
            return self._crash(run, own, error)
        return self._finish(run, own, payload)

    def _finish(self, run: CallRun, own: Ownership, payload: Payload) -> End | None:
        envelope = self._pack(payload)
        self._metrics.count(FLIGHT_RESULT_BYTES, len(envelope.blob), stage=own.key.stage)
        while True:
            landed = Landed(payload, Role.OWNER, own.fence)
            run.whole(own.fence)
            try:
                ack = self._told_chunks(run)
                if ack is Ack.OK:
                    ack = self._coordinator.finish(own, envelope)
            except StoreError as error:
                run.flight.resolve(landed)
                if self._gives_up(run, error):
                    return self._not_stored(own, landed)
                continue
            if ack is Ack.OK:
                return self._ended(own, landed, "stored")
            if ack is not Ack.LOST or not self._regain(run, own):
                return self._lost(run, ack)

    def _pack(self, payload: Payload) -> Envelope:
        if len(payload.data) < PACK_ELSEWHERE:
            return self._serializer.pack(payload)
        envelope: Envelope = get_hub().threadpool.apply(self._serializer.pack, (payload,))
        return envelope

    def _crash(self, run: CallRun, own: Ownership, error: BaseException) -> End | None:
        if isinstance(error, SessionForgotten) or (
            isinstance(error, (Overloaded, SessionBusy)) and not run.running
        ):
            # no place for it, or nobody wants it: whoever asks later asks as if nobody had
            return self.give_back(own, error)
        failure = self._coordinator.remembered(own, Failure.of(error))
        end: End = Crashed(failure, own.fence, error)
        packed = b""
        if isinstance(error, FallbackAnswer):
            try:
                payload = self._serializer.freeze(error.value)
            except ResultRejected as rejected:
                return self._crash(run, own, rejected)
            end = Landed(payload, Role.OWNER, own.fence, error.action)
            packed = pack_fallback(error.action, self._pack(payload))
        return self._tell_failure(run, own, failure, end, packed)

    def _tell_failure(
        self, run: CallRun, own: Ownership, failure: Failure, end: End, packed: bytes
    ) -> End | None:
        while True:
            try:
                self._told_chunks(run)
            except StoreError:
                run.flight.resolve(end)
            try:
                ack = self._coordinator.fail(own, failure, packed)
            except StoreError as trouble:
                run.flight.resolve(end)
                if self._gives_up(run, trouble):
                    return self._ended(own, end, "failed")
                continue
            if ack is Ack.OK:
                return self._ended(own, end, "failed")
            if ack is not Ack.LOST or not self._regain(run, own):
                return self._lost(run, ack)

    def _not_stored(self, own: Ownership, landed: Landed) -> End:
        """The answer could not be stored: those who wait elsewhere are told so."""
        try:
            self._coordinator.fail(own, NOT_STORED)
        except StoreError:
            log.warning("flight %s: its answer was not stored", own.key.flight_id)
        return self._ended(own, landed, "not_stored")

    # -- the flight ends without the call --------------------------------------------------

    def _let_go(self, run: CallRun, own: Ownership, news: News) -> End:
        """This worker stops, or could not renew its lease and may not go on without."""
        run.stop()
        drain = news is Signal.DRAIN
        error = Draining if drain else CoordinationUnavailable
        return self.give_back(own, error(retry_after_s=1))

    def give_back(self, own: Ownership, error: FlightSvcError) -> End:
        """End an ownership without an end of its flight: whoever asks next has it."""
        try:
            self._coordinator.release(own)
        except StoreError:
            log.info("flight %s: its lease ends by itself", own.key.flight_id)
        return self._ended(own, Crashed.as_is(error), "released")

    def _abandon(self, run: CallRun, own: Ownership) -> End | None:
        """Nobody waits here: stop the call, if nobody waits elsewhere either.

        :returns: the end; None if the call goes on. Then a heartbeat that sees no follower any
            more brings the question again.
        """
        if not run.flight.unwanted:
            return None
        try:
            ack = self._coordinator.abandon(own)
        except StoreError:
            return None
        if ack is Ack.OK and run.flight.unwanted:
            run.stop()
            return self._ended(own, Crashed.as_is(WaitTimeout()), "abandoned")
        if ack is not Ack.JOINED:
            # lost, or somebody came to the flight when it was deleted: it is asked for again
            run.tell(Signal.STALE if ack is Ack.STALE else Signal.LOST)
        return None

    # -- its chunks --------------------------------------------------------------------------

    def _open_outbox(self, run: CallRun, own: Ownership) -> None:
        """From now on, other workers can read what the call emits."""
        run.outbox = Outbox(
            self._coordinator, own, run.writer, lambda ack: run.tell(Signal[ack.name])
        )
        if run.writer.count:
            run.outbox.add(0)

    def _told_chunks(self, run: CallRun) -> Ack:
        """All chunks are in Redis before the end is."""
        return run.outbox.flush() if run.outbox is not None else Ack.OK

    def _ended(self, own: Ownership, end: End, outcome: str) -> End:
        self._metrics.count(FLIGHT_ENDS, stage=own.key.stage, outcome=outcome)
        return end

    def _lost(self, run: CallRun, ack: Ack) -> End | None:
        """Another worker has the flight: publish nothing, follow it (there is no end yet)."""
        stage = run.flight.key.stage
        self._metrics.count(FLIGHT_LOST, stage=stage, reason=ack.value.lower())
        self._metrics.count(FLIGHT_ENDS, stage=stage, outcome="lost")
        return None

    def _regain(self, run: CallRun, own: Ownership) -> bool:
        """Redis lost the flight: ask for it again, so that the running call can go on.

        :returns: whether the call may go on (also where Redis does not answer: the next
            heartbeat will tell).
        """
        try:
            outcome = self._coordinator.acquire_or_join(Ask(own.key, own.token))
        except StoreError:
            run.settle()
            return True
        if not isinstance(outcome, Ownership):
            return False
        self._metrics.count(FLIGHT_LOST, stage=own.key.stage, reason="regained")
        own.fence = outcome.fence
        if run.running:
            self.on_running(own)
        if run.outbox is not None:
            run.outbox.resume()
        run.settle()
        return True

    def _gives_up(self, run: CallRun, error: StoreError) -> bool:
        """Pause before an end is told again; whether that has no sense any more.

        It is told as long as the lease can live. A full server is asked for a shorter time,
        since followers wait for its word; a worker that stops does not wait for a server at all.
        """
        detect_s = self._settings.takeover_detect_ms / 1000
        budget_s = self._settings.stage(run.flight.key.stage).span_ms / 1000
        full = error.kind in ("oom", "misconf")
        give_up_at = (run.ended_at if full else run.began_at + budget_s) + detect_s
        told = run.told_to_let_go(REPEAT_S)
        return told or self._draining() or time.monotonic() > give_up_at
