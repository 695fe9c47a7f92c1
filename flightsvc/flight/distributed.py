"""What a flight does, in its own greenlet: ask Redis, and own, follow or replay to an end.

Also the wiring of the parts that talk to Redis: one set of them a worker.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass, replace

import gevent
from gevent.lock import BoundedSemaphore

from flightsvc.errors import CoordinationUnavailable, Draining, KeyConflict, WaitTimeout
from flightsvc.flight.call import Adopted, CallRun
from flightsvc.flight.coordinator import (
    Ask,
    Conflict,
    FlightCoordinator,
    Following,
    Outcome,
    Ownership,
    Refused,
    Replayed,
)
from flightsvc.flight.events import FlightEvents
from flightsvc.flight.follower import FlightFollower
from flightsvc.flight.health import CoordinationHealth, ServerHealth
from flightsvc.flight.heartbeat import HeartbeatManager
from flightsvc.flight.local import LocalFlight
from flightsvc.flight.orphans import OrphanedAcquires
from flightsvc.flight.owner import FlightOwner
from flightsvc.flight.reader import wake
from flightsvc.flight.serializer import ResultSerializer, UnknownVersion, UnreadableResult
from flightsvc.flight.session_lock import RemoteLocks
from flightsvc.flight.solo import SoloPilot
from flightsvc.flight.state import Action, Crashed, End, FlightView, Landed, Role
from flightsvc.metrics import FLIGHT_ACTIONS, FLIGHT_FALLBACKS, Metrics
from flightsvc.settings import Settings
from flightsvc.store import Names, Store, StoreError

log = logging.getLogger(__name__)

#: Time in seconds between two questions of a waiting follower to a Redis that does not answer.
ASK_PAUSE_S = 0.2


@dataclass(slots=True)
class Doubt:
    """What is not known of a flight while Redis does not answer."""

    since: float | None = None
    maybe_granted: bool = False

    def add(self, error: StoreError) -> None:
        """One more question without an answer."""
        self.since = self.since or time.monotonic()
        self.maybe_granted = self.maybe_granted or error.maybe_done

    @property
    def age_s(self) -> float:
        """For how long Redis has not answered."""
        return time.monotonic() - self.since if self.since else 0.0


class DistributedFlights:
    """Flights that all workers of a namespace share.

    :param worker: names this worker among them.
    """

    def __init__(
        self,
        store: Store,
        serializer: ResultSerializer,
        settings: Settings,
        metrics: Metrics,
        worker: str,
    ) -> None:
        self._store = store
        self._serializer = serializer
        self._settings = settings
        self._metrics = metrics
        names = Names(settings.namespace, settings.flight_shards)
        self.coordinator = FlightCoordinator(store, names, settings, worker)
        self._names = names
        self.health = CoordinationHealth(
            store, names, lambda shard: wake(store, names, worker, shard), metrics
        )
        self._orphans = OrphanedAcquires(self.coordinator, serializer, self._health_of)
        self._events = FlightEvents(
            store, names, worker, lambda shard: self.health.of(shard).heard()
        )
        self.locks = RemoteLocks(
            store,
            names,
            self.coordinator,
            self._events,
            self.health,
            settings,
            lambda: self._heartbeat.want(),
        )
        self._heartbeat = HeartbeatManager(
            self.coordinator, self.health, names, settings, self.locks, self._orphans
        )
        self._follower = FlightFollower(self._events, serializer, self.coordinator.saw)
        self._owner = FlightOwner(
            self.coordinator,
            self._heartbeat,
            serializer,
            settings,
            metrics,
            draining=lambda: not self.may_own,
        )
        self._solo = SoloPilot(serializer, settings, metrics)
        #: by server, how many may ask it at once
        self._asking: dict[str, BoundedSemaphore] = {}
        # a follower asks for so long before it goes on without Redis
        self._patience_s = settings.takeover_detect_ms / 1000
        #: a worker that is about to stop takes no new ownership
        self.may_own = True

    def fly(self, flight: LocalFlight) -> End:
        """Bring a flight to its end.

        :returns: the answer or the failure; never raises for either.
        """
        self.health.look_once()
        ask, doubt = Ask(flight.key, flight.token, replay=flight.replay), Doubt()
        while True:
            if self._is_over(flight, ask):
                self._settle_later(flight, ask, doubt)
                # nobody is left to hear it; an end that was refused must not be replayed
                return Crashed.as_is(WaitTimeout())
            try:
                outcome = self._ask(replace(ask, may_own=self.may_own))
                doubt = Doubt()
                step = self._take(flight, ask, outcome)
            except StoreError as error:
                doubt.add(error)
                if ask.waited_fence and doubt.age_s < self._patience_s:
                    gevent.sleep(ASK_PAUSE_S)
                    continue
                self._settle_later(flight, ask, doubt)
                step, doubt = self._without_redis(flight, ask), Doubt()
            if not isinstance(step, Ask):
                return step
            ask = step

    def inspect(self, flight_id: str) -> FlightView | None:
        """A flight as Redis holds it.

        :raises StoreError: if Redis does not answer.
        """
        return self.coordinator.inspect(flight_id)

    def stand_in(self, view: FlightView) -> Landed | None:
        """What those who waited were told in place of an answer; see :class:`FlightFollower`.

        :raises StoreError: if Redis does not answer.
        """
        return self._follower.stand_in(view.flight_id, view.fence)

    @property
    def shards(self) -> int:
        """How many parts the flights are spread over."""
        return self._names.shards

    def close(self) -> None:
        """Stop the background greenlets and close the connections."""
        self._events.close()
        self._heartbeat.close()
        self.health.close()
        self._store.close()

    def _ask(self, ask: Ask) -> Outcome:
        """Acquire or join, unless Redis did not answer lately.

        Some connections stay free for heartbeats and ends, however many ask. Who waited for
        a place looks again: one time-out must not become a queue of them.
        """
        health = self._health_of(ask.key.flight_id)
        with self._place(health):
            if not health.up:
                raise StoreError("down", "Redis did not answer lately")
            return self._ask_within_budget(ask, health)

    def _place(self, health: ServerHealth) -> BoundedSemaphore:
        places = max(1, self._settings.redis_connections - 1)
        return self._asking.setdefault(health.name, BoundedSemaphore(places))

    def _health_of(self, flight_id: str) -> ServerHealth:
        return self.health.of(self._names.shard_of(flight_id))

    def _ask_within_budget(self, ask: Ask, health: ServerHealth) -> Outcome:
        """One broken connection is asked again at once, with the same token."""
        began = time.monotonic()
        try:
            outcome = self.coordinator.acquire_or_join(ask)
        except StoreError as error:
            budget_s = self._settings.redis_timeout_ms / 1000
            if error.kind != "connection" or time.monotonic() - began > budget_s / 2:
                health.failed(error)
                raise
            outcome = self._ask_again(ask, health, error)
        health.succeeded()
        return outcome

    def _ask_again(self, ask: Ask, health: ServerHealth, first: StoreError) -> Outcome:
        try:
            return self.coordinator.acquire_or_join(ask)
        except StoreError as error:
            health.failed(error)
            # the first question may have been carried out, however the second was refused
            raise (error if error.maybe_done else first) from None

    def _take(self, flight: LocalFlight, ask: Ask, outcome: Outcome) -> End | Ask:
        """One step: the flight's end, or what to ask next."""
        self._metrics.count(
            FLIGHT_ACTIONS, stage=flight.key.stage, action=_action(outcome).value.lower()
        )
        if isinstance(outcome, Ownership):
            if flight.end is not None or not self.may_own:
                return self._owner.give_back(outcome, Draining(retry_after_s=1))
            end = self._owner.fly(flight, outcome)
            return end or replace(ask, waited_fence=outcome.fence)
        if isinstance(outcome, Following):
            end = self._follower.follow(flight, outcome)
            return end or replace(ask, waited_fence=outcome.fence)
        if isinstance(outcome, Replayed):
            self._follower.catch_up(flight, outcome.fence)
            return self._replay(ask, outcome)
        if isinstance(outcome, Refused):
            return Crashed(outcome.failure, outcome.fence)
        if isinstance(outcome, Conflict):
            return Crashed.as_is(KeyConflict())
        return Crashed.as_is(Draining(retry_after_s=1))

    def _replay(self, ask: Ask, replayed: Replayed) -> End | Ask:
        try:
            payload = self._serializer.unpack(replayed.envelope)
        except UnknownVersion as error:
            log.warning("flight %s: %s", ask.key.flight_id, error)
            return replace(ask, replay=False, waited_fence=0)
        except UnreadableResult:
            log.warning("flight %s: its stored answer is damaged", ask.key.flight_id)
            self.coordinator.discard(ask.key, replayed)
            return ask
        waited = 0 < ask.waited_fence <= replayed.fence
        return Landed(payload, Role.FOLLOWER if waited else Role.REPLAY, replayed.fence)

    def _is_over(self, flight: LocalFlight, ask: Ask) -> bool:
        """Whether nobody is left here to follow for; then the owner elsewhere is told so."""
        if flight.end is None and (flight.waiting or not ask.waited_fence):
            return False
        if flight.abandon and ask.waited_fence:
            with suppress(StoreError):  # the lease ends by itself
                self.coordinator.leave(flight.key)
        # somebody may have come meanwhile: the next question takes the lease again
        return flight.end is not None or not flight.waiting

    def _settle_later(self, flight: LocalFlight, ask: Ask, doubt: Doubt) -> None:
        """A question without a reply may be carried out yet: its flight must not be left alone."""
        if doubt.maybe_granted:
            self._orphans.add(flight, ask)
            self._heartbeat.want()

    def _without_redis(self, flight: LocalFlight, ask: Ask) -> End | Ask:
        """Coordination failed, not the call: this worker flies alone, if the mode allows it."""
        if self._settings.mode == "distributed":
            return Crashed.as_is(CoordinationUnavailable(retry_after_s=1))
        if not self.may_own:
            return Crashed.as_is(Draining(retry_after_s=1))
        self._metrics.count(FLIGHT_FALLBACKS, stage=flight.key.stage)
        run = CallRun(flight, self._owner.on_running)
        with run.flying(self._metrics):
            end = self._solo.go_on(run)
            if not isinstance(end, Adopted):
                return end
            run.adopt(end.own)
            return self._owner.go_on(run, end.own) or replace(ask, waited_fence=end.own.fence)


def _action(outcome: Outcome) -> Action:
    if isinstance(outcome, Ownership):
        return outcome.action
    if isinstance(outcome, Following):
        return Action.FOLLOWER_WAIT
    if isinstance(outcome, Replayed):
        return Action.REPLAY_SUCCESS
    if isinstance(outcome, Refused):
        return Action.REPLAY_FAILURE
    return Action.KEY_CONFLICT if isinstance(outcome, Conflict) else Action.DECLINED
