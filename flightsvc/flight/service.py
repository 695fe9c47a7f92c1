"""One call a key, however many ask.

:meth:`SingleFlight.run` is what a caller does: the worker's own replays first, then its
flights, then wait. What the flight itself does stands in ``distributed.py``.
"""

from __future__ import annotations

import functools
import logging
import math
import time
import uuid
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import gevent
from gevent.hub import get_hub

from flightsvc.errors import CoordinationUnavailable, Draining, SettingsError
from flightsvc.flight.call import Call, Signal
from flightsvc.flight.distributed import DistributedFlights
from flightsvc.flight.key import FlightKey
from flightsvc.flight.live import LiveFlights, look
from flightsvc.flight.local import LocalFlight, LocalSingleFlight
from flightsvc.flight.patched import require_gevent
from flightsvc.flight.replay import ReplayCache
from flightsvc.flight.result import FlightResult, is_replay, result_of
from flightsvc.flight.serializer import ResultSerializer
from flightsvc.flight.session_lock import SessionLock
from flightsvc.flight.solo import SoloPilot
from flightsvc.flight.state import Ack, Crashed, End, Failure, FlightView, Landed, Role
from flightsvc.flight.stream import FlightStream, Joined
from flightsvc.flight.tally import Tally
from flightsvc.metrics import FLIGHT_REPLAY_BYTES, FLIGHT_WAITERS, FLIGHTS_IN_FLIGHT, Metrics
from flightsvc.settings import Settings
from flightsvc.store import Store, StoreError, open_store

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

#: Longest deadline of a caller, in seconds.
LONGEST_DEADLINE_S = 86_400.0
#: Waiters that a library user's process may hold; the service's own cap is a setting.
LIBRARY_WAITERS = 1_000_000


class SingleFlight:
    """Joins equal calls: one owner makes the call, everybody gets its answer.

    Make one a process, after it has forked; call :meth:`close` at its end. gevent must have
    patched the process.

    :param settings: as :func:`flightsvc.settings.load_settings` gives them; ``redis_url`` may
        be empty only in mode ``local``.
    :param metrics: where everything is counted; by default in memory only.
    :param store: connections to the Redis of these settings that are there already; they are
        closed with this object. By default it opens its own.
    :raises SettingsError: if there is no Redis to coordinate through, or gevent has not patched
        the process.
    """

    def __init__(
        self, settings: Settings, metrics: Metrics | None = None, *, store: Store | None = None
    ) -> None:
        require_gevent()
        self._hub = get_hub()
        self._settings = settings
        self.metrics = metrics or Metrics.off()
        self.worker = uuid.uuid4().hex[:12]
        self._tally = Tally(self.metrics, settings)
        self._replays = ReplayCache(settings.l1_max_bytes)
        self._local = LocalSingleFlight(settings.max_waiters)
        serializer = ResultSerializer(settings.max_result_bytes, settings.result_encoding)
        self._distributed = self._connect(serializer, store)
        #: one heavy call at a time for a session
        self.locks = SessionLock(
            self._distributed.locks if self._distributed else None, self.metrics
        )
        self._solo = SoloPilot(serializer, settings, self.metrics)
        self._draining = False
        self._let_go_at = math.inf
        self.metrics.gauge(FLIGHTS_IN_FLIGHT, lambda: float(len(self._local)))
        self.metrics.gauge(FLIGHT_WAITERS, lambda: float(self._local.waiters))
        self.metrics.gauge(FLIGHT_REPLAY_BYTES, lambda: float(self._replays.bytes_used))

    @classmethod
    def from_url(cls, url: str, *, namespace: str = "flightsvc", **settings: Any) -> SingleFlight:
        """For use as a library: nothing is read from the environment.

        :param url: of one server, of Sentinels, or of a cluster; see ``docs/redis.md``.
        :param namespace: services that share it share their flights.
        :param settings: any other setting, by its name in :class:`~flightsvc.settings.Settings`.
        :raises SettingsError: if one is wrong.
        """
        waiters = {"max_waiters": LIBRARY_WAITERS, "worker_connections": LIBRARY_WAITERS + 1}
        given = {**waiters, **settings, "redis_url": url, "namespace": namespace}
        return cls(Settings.checked(**given))

    def run(
        self,
        key: FlightKey,
        call: Call,
        *,
        deadline_s: float | None = None,
        replay: bool = True,
        queued: bool = False,
    ) -> FlightResult:
        """Get the answer to a question: from a replay, a flight in the air, or by the one call.

        :param key: what the question is.
        :param call: makes the call; gets a :class:`FlightContext`, returns JSON or bytes. It
            runs in a greenlet of its own, outside the caller's request.
        :param deadline_s: longest wait in seconds; by default the stage's budget, and the time
            to replace a dead owner.
        :param replay: whether the answer of an earlier flight is welcome.
        :param queued: the call itself says, by ``mark_running()``, when it leaves its queue.
        :raises CallFailed: the one call failed.
        :raises WaitTimeout: the deadline passed; the call goes on.
        :raises TooManyWaiters: this worker already holds as many as it may.
        :raises NestedFlight: called from inside its own call.
        :raises FlightSvcError: others, see ``errors.py``.
        """
        deadline = self._deadline(key, deadline_s)
        with self._tally.caller(key) as caller:
            while True:
                replayed = self._replayed(key, replay)
                if replayed is not None:
                    return caller.answered(replayed)
                flight, first = self._local.join(key, call, self._fly, replay=replay, queued=queued)
                end = self._local.wait(flight, deadline)
                if replay or not is_replay(end):
                    return caller.answered(result_of(key, end, first), flight)

    def stream(
        self,
        key: FlightKey,
        call: Call,
        *,
        deadline_s: float | None = None,
        replay: bool = True,
        queued: bool = False,
    ) -> FlightStream:
        """As :meth:`run`, but the chunks that the call emits can be read while it runs.

        Both share one flight. Who comes late gets every chunk from the start; a replayed answer
        has no chunks. Nothing waits here: all waiting is in :meth:`FlightStream.next`.

        :param call: hands each chunk to ``ctx.emit()``, and returns the whole answer.
        :raises TooManyWaiters: this worker already holds as many as it may.
        :raises KeyConflict: the explicit key stands for another request in this worker.
        :raises NestedFlight: called from inside its own call.
        """
        deadline = self._deadline(key, deadline_s)

        def join() -> FlightResult | Joined:
            replayed = self._replayed(key, replay)
            if replayed is not None:
                return replayed
            flight, first = self._local.join(key, call, self._fly, replay=replay, queued=queued)
            return Joined(self._local.begin_stream(flight), first)

        return FlightStream(
            join,
            self._local.end_stream,
            self._tally.caller(key).__enter__(),
            flight_id=key.flight_id,
            deadline=deadline,
            replay=replay,
        )

    def coalesce(
        self,
        stage: str,
        *,
        key: Callable[..., Any],
        tenant: str = "",
        deadline_s: float | None = None,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Decorate a function, so that equal calls of it are made once.

        :param key: gets the function's arguments; returns one part of the key or a tuple.
        """

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            @functools.wraps(function)
            def joined(*args: P.args, **kwargs: P.kwargs) -> R:
                parts = key(*args, **kwargs)
                parts = parts if isinstance(parts, tuple) else (parts,)
                flight_key = FlightKey(stage, *parts, tenant=tenant)
                result = self.run(
                    flight_key, lambda _: function(*args, **kwargs), deadline_s=deadline_s
                )
                value: R = result.value
                return value

            return joined

        return decorate

    def inspect(self, flight_id: str) -> FlightView | None:
        """A flight as Redis holds it, or None.

        :param flight_id: 32 hex digits.
        :raises CoordinationUnavailable: Redis does not answer.
        """
        if self._distributed is None:
            return None
        try:
            return self._distributed.inspect(flight_id)
        except StoreError as error:
            raise CoordinationUnavailable(retry_after_s=1) from error

    def stand_in(self, view: FlightView) -> FlightResult | None:
        """What those who waited for a flight were told in place of an answer.

        :param view: of a flight that failed.
        :returns: None if they were told the failure, or if it ended more than half a minute ago.
        :raises CoordinationUnavailable: Redis does not answer.
        """
        if self._distributed is None:
            return None
        try:
            end = self._distributed.stand_in(view)
        except StoreError as error:
            raise CoordinationUnavailable(retry_after_s=1) from error
        if end is None:
            return None
        return FlightResult(end.payload, Role.REPLAY, view.flight_id, end.fence, end.fallback)

    def live(self, limit: int = 200, *, newest: bool = False) -> LiveFlights:
        """The flights in the air now, of all workers; without Redis those of this one.

        For people who look, about once a second: it asks Redis twice a shard. Never raises for a
        Redis that does not answer.

        :param limit: flights that are returned at most.
        :param newest: the youngest first; else the oldest.
        """
        return look(self._local, self._distributed, self.worker, limit, newest=newest)

    def in_the_air(self, flight_id: str) -> FlightKey | None:
        """The key of a flight that this worker waits for, or whose call it makes; else None."""
        for flight in self._local.flights():
            if flight.key.flight_id == flight_id:
                return flight.key
        return None

    def forget(self, flight_id: str) -> bool:
        """Throw away a flight's stored answer, or its failure; the next caller asks anew.

        Other workers' own memory is not reached: tell them to :meth:`forget_here`.

        :param flight_id: 32 hex digits.
        :returns: False if it is in the air: that call goes on and is stored.
        :raises CoordinationUnavailable: Redis does not answer.
        """
        self.forget_here(flight_id)
        if self._distributed is None:
            return self.in_the_air(flight_id) is None
        try:
            return self._distributed.coordinator.forget(flight_id) is not Ack.BUSY
        except StoreError as error:
            raise CoordinationUnavailable(retry_after_s=1) from error

    def forget_here(self, flight_id: str) -> None:
        """Throw away what this worker itself remembers of a flight."""
        self._replays.forget(flight_id)

    @property
    def coordination(self) -> str:
        """``ok``, ``degraded`` (Redis does not answer as it should) or ``off`` (mode `local`)."""
        if self._distributed is None:
            return "off"
        health = self._distributed.health
        return "ok" if health.up and health.check() and health.ok else "degraded"

    def drain(self, grace_s: float = 0.0) -> None:
        """Take no new ownership; after a time, let go of what still runs.

        :param grace_s: time in seconds that running calls are given. Less time cuts a draining
            short that goes on already.
        """
        self._draining = True
        if self._distributed is not None:
            self._distributed.may_own = False
        limit = time.monotonic() + grace_s
        if limit < self._let_go_at:
            self._let_go_at = limit
            gevent.spawn_later(grace_s, self._let_go) if grace_s > 0 else self._let_go()

    def close(self, grace_s: float = 0.0) -> None:
        """Drain, wait for what still runs, and close every connection.

        :param grace_s: time in seconds that running calls are given.
        """
        self.drain(grace_s)
        limit = time.monotonic() + grace_s + 1.0
        while len(self._local) and time.monotonic() < limit:
            gevent.sleep(0.02)
        self._let_go()
        self._local.close()
        if self._distributed is not None:
            self._distributed.close()

    # -- what happens in a flight's greenlet -------------------------------------------------

    def _fly(self, flight: LocalFlight) -> None:
        flight.abandon = self._settings.stage(flight.key.stage).abandon
        try:
            end = self._end_of(flight)
        except Exception as error:  # a bug of ours must not leave anybody waiting
            log.exception("flight %s failed unexpectedly", flight.key.flight_id)
            end = Crashed(Failure.of(error), cause=error)
        if isinstance(end, Landed) and end.fallback is None:
            ttl_s = self._settings.stage(flight.key.stage).l1_ttl_s
            key = flight.key
            self._replays.put(key.flight_id, end.payload, end.fence, ttl_s, key.digest)
        flight.resolve(end)

    def _end_of(self, flight: LocalFlight) -> End:
        if self._distributed is not None:
            return self._distributed.fly(flight)
        if self._draining:
            return Crashed.as_is(Draining(retry_after_s=1))
        return self._solo.fly(flight)

    def _let_go(self) -> None:
        for flight in self._local.flights():
            if flight.run is not None:
                flight.run.tell(Signal.DRAIN)
            else:
                flight.resolve(Crashed.as_is(Draining(retry_after_s=1)))

    # -- small things ------------------------------------------------------------------------

    def _connect(
        self, serializer: ResultSerializer, store: Store | None
    ) -> DistributedFlights | None:
        settings = self._settings
        if settings.mode == "local":
            return None
        if not settings.redis_url:
            raise SettingsError(
                "FLIGHTSVC_REDIS_URL is empty and no embedded server runs; "
                "set it, or set FLIGHTSVC_MODE=local"
            )
        store = store or open_store(settings, self.metrics)
        return DistributedFlights(store, serializer, settings, self.metrics, self.worker)

    def _replayed(self, key: FlightKey, replay: bool) -> FlightResult | None:
        """The answer from this worker's memory, if it is there and welcome."""
        replayed = self._replays.get(key.flight_id, key.digest) if replay else None
        if replayed is None:
            return None
        return FlightResult(replayed.payload, Role.L1, key.flight_id, replayed.fence)

    def _deadline(self, key: FlightKey, deadline_s: float | None) -> float:
        """When a caller's patience ends (monotonic)."""
        if get_hub() is not self._hub:
            raise RuntimeError(
                "run() was called in a thread that gevent does not know (a thread pool's?): call "
                "it in a greenlet of the thread that made this SingleFlight"
            )
        if deadline_s is None:
            return time.monotonic() + self._settings.wait_ms(key.stage) / 1000
        if not 0 < deadline_s <= LONGEST_DEADLINE_S:
            raise ValueError(f"deadline_s is {deadline_s}; give seconds, above 0 and at most a day")
        return time.monotonic() + deadline_s
