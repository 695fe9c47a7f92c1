"""Everything that can happen to two flights, drawn step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from flightsvc.flight.coordinator import Ask, Ownership, Replayed
from flightsvc.flight.state import Action
from tests.proof.deciding import Question, Told
from tests.proof.draws import ASIDES, FLIGHT, MOMENTS, PICK, SILENT, TWIST, WORKER, WORKERS, WRITES
from tests.proof.lockstep import FLIGHTS, Lockstep
from tests.proof.promises import Promises
from tests.proof.world import DETECT
from tests.proof.writes import Owned, Write, blob_of, write
from tests.support.redis_server import RedisServer


@dataclass
class Asker:
    """A flight object of a worker.

    :param waited: the fence that it was told to wait for.
    """

    worker: int
    token: str
    flight: int
    waited: int = 0


class Machine(RuleBasedStateMachine):
    """One run: some workers, two flights, a server."""

    def __init__(self, server: RedisServer) -> None:
        super().__init__()
        self.both = Lockstep(server)
        self.model = self.both.model
        self.promises = Promises(FLIGHTS)
        self.workers = [self.both.worker(f"w{n}") for n in range(WORKERS)]
        self.highest = [0] * WORKERS
        self.askers: list[Asker] = []
        self.owned: list[Owned] = []
        self.fences = [1]
        #: does the last write again
        self.again: Callable[[], None] | None = None

    @initialize(worker=WORKER, flight=FLIGHT)
    def somebody_asks(self, worker: int, flight: int) -> None:
        self._ask(self._new_asker(worker, flight))

    # -- asking ------------------------------------------------------------------------------

    @rule(worker=WORKER, flight=FLIGHT, silent=SILENT)
    def another_asks(self, worker: int, flight: int, silent: bool) -> None:
        """A new asker; perhaps after the owner was silent for too long."""
        if silent:
            self._now(self.model.us + (DETECT + 1) * 1000)
        self._ask(self._new_asker(worker, flight))

    @precondition(lambda self: self.askers)
    @rule(
        pick=PICK,
        replay=st.sampled_from([True, True, False]),
        may_own=st.sampled_from([True, True, True, False]),
        digest=st.sampled_from(["", "", "", "", "other"]),
        waited=st.one_of(st.none(), PICK),
    )
    def ask(self, pick: int, replay: bool, may_own: bool, digest: str, waited: int | None) -> None:
        asker = _picked(self.askers, pick)
        fence = asker.waited if waited is None else _picked(self.fences, waited)
        self._ask(asker, digest=digest, waited=fence, replay=replay, may_own=may_own)

    def _new_asker(self, worker: int, flight: int) -> Asker:
        self.askers.append(Asker(worker, f"t{len(self.fences)}-{len(self.askers)}", flight))
        return self.askers[-1]

    def _ask(self, asker: Asker, **options: Any) -> None:
        name, highest = f"w{asker.worker}", self.highest[asker.worker]
        asking = Question(asker.flight, asker.token, name, highest=highest, **options)
        key = self.both.key(asking.flight, asking.digest)
        ask = Ask(key, asking.token, asking.waited, asking.replay, asking.may_own)
        worker, before = self.workers[asker.worker], self.model.state_of(asker.flight)
        got, told = self.both.step(
            lambda: worker.acquire_or_join(ask), lambda: self.model.acquire(asking)
        )
        self.both.agree(asking.flight, got, told)
        self.promises.asked(before, asking.waited, told.action)
        self._heard(asker, asking, told, before)
        owned = isinstance(got, Ownership)
        self.again = (lambda: self._ask_again(asker, told, options)) if owned else None

    def _heard(
        self, asker: Asker, asking: Question, told: Told, before: tuple[str | None, int]
    ) -> None:
        number = asking.flight
        verb = "own" if told.action.startswith("OWNER") else "give_up"
        if verb == "own":
            self.promises.granted(number, asking.token, told.fence, asking.highest)
            if before[1] != told.fence:
                self.owned.append(Owned(number, asking.token, told.fence))
            else:
                verb = "asked again"
        self.promises.moved(verb, before[0], self.model.state_of(number)[0])
        if told.action == Action.FOLLOWER_WAIT:
            asker.waited = told.fence
        if told.fence:
            self.fences.append(told.fence)
            self.highest[asker.worker] = max(self.highest[asker.worker], told.fence)

    def _ask_again(self, asker: Asker, told: Told, options: dict[str, Any]) -> None:
        """The reply was lost: the asker is told the same, and nothing is granted twice."""
        owned = len(self.owned)
        before = self.model.core_of(asker.flight)
        self._ask(asker, **options)
        assert len(self.owned) == owned, "asked twice, granted twice"
        assert self.model.core_of(asker.flight) == before
        assert self.fences[-1] == told.fence

    # -- what owners write -------------------------------------------------------------------

    @precondition(lambda self: self.owned)
    @rule(pick=PICK, twist=TWIST, what=WRITES)
    def write(self, pick: int, twist: str, what: tuple[Any, ...]) -> None:
        own = _picked(self.owned, pick).twisted(twist)
        self._write(write(self.model, own, *what))

    def _write(self, one: Write) -> str:
        own, before = one.own, self.model.state_of(one.own.flight)[0]
        sent = self._ownership(own)
        got, told = self.both.step(lambda: one.real(self.workers[0], sent), one.model)
        ack: str = told.action if isinstance(told, Told) else told
        if isinstance(told, Told):
            assert (got[0].value, *got[1:]) == (ack, told.attempt, told.followers)
        else:
            assert got.value == ack
        self.promises.written(one.verb, own.flight, own.token, own.fence, ack)
        self.promises.moved(one.verb, before, self.model.state_of(own.flight)[0])
        if one.verb == "finish" and ack == "OK":
            self.promises.finished(own.flight, own.fence, one.checksum)
        self.again = lambda: self._write_again(one, ack)
        return ack

    def _write_again(self, one: Write, ack: str) -> None:
        """The reply was lost: nothing changes twice, and the owner hears that it was done."""
        before = self.model.core_of(one.own.flight)
        second = self._write(one)
        assert self.model.core_of(one.own.flight) == before
        known = {"release": "STALE", "abandon": "LOST"}
        assert second == (known.get(one.verb, ack) if ack == "OK" else ack)

    @rule(picks=st.lists(PICK, max_size=3))
    def beat(self, picks: list[int]) -> None:
        owned = [_picked(self.owned, pick) for pick in picks if self.owned]
        sent = [self._ownership(own) for own in owned]
        got, told = self.both.step(
            lambda: self.workers[0].beat(0, sent),
            lambda: self.model.beat([(own.flight, own.token, own.fence) for own in owned]),
        )
        assert [(ack.value, followers) for ack, followers in got] == told
        for own, (ack, _) in zip(owned, told, strict=True):
            self.promises.written("beat", own.flight, own.token, own.fence, ack)
        self.again = None

    @precondition(lambda self: self.again is not None)
    @rule()
    def again_as_the_reply_was_lost(self) -> None:
        assert self.again is not None
        self.again()

    # -- everything else --------------------------------------------------------------------

    @rule(moment=MOMENTS)
    def time(self, moment: tuple[Any, ...]) -> None:
        """Later; just before, at, or just after a moment of change; or the clock is set back."""
        now = self.model.ms
        if moment[0] == "later":
            now += moment[1]
        elif moment[0] == "back":
            now -= moment[1]
            self.promises.set_back()
        else:
            _, pick, off = moment
            edges = sorted(at + off for at in self.model.edges() if at + off > now)
            now = edges[pick % len(edges)] if edges else now
        self._now(max(now * 1000, self.model.us) if moment[0] != "back" else now * 1000)

    @rule(what=ASIDES)
    def aside(self, what: tuple[Any, ...]) -> None:
        """Somebody looks, or throws an answer away; keys are lost; a worker dies."""
        self.again = None
        getattr(self, f"_{what[0]}")(*what[1:])

    def _inspect(self, flight: int) -> None:
        meta, now = self.model.flights[flight].meta, self.model.ms
        flight_id = self.both.key(flight).flight_id
        view, _ = self.both.step(lambda: self.workers[0].inspect(flight_id), lambda: None)
        assert (view is None) == (meta is None)
        if view is not None and meta is not None:
            assert (view.state.value, view.fence) == (meta.state, meta.fence)
            assert view.heartbeat_age_ms == now - meta.heartbeat
            assert view.age_ms == now - meta.created
            leases = self.model.flights[flight].interest.values()
            assert view.followers == sum(lease > now for lease in leases)

    def _leave(self, flight: int, worker: int) -> None:
        self.both.step(
            lambda: self.workers[worker].leave(self.both.key(flight)),
            lambda: self.model.leave(flight, f"w{worker}"),
        )

    def _discard(self, flight: int, right: bool, fence: int, checksum: str) -> None:
        meta = self.model.flights[flight].meta
        known = meta.result_fence if right and meta else _picked(self.fences, fence)
        seen = Replayed(known, blob_of(checksum))
        got, told = self.both.step(
            lambda: self.workers[0].discard(self.both.key(flight), seen),
            lambda: self.model.discard(flight, known, seen.envelope),
        )
        assert got.value == told

    def _forget(self, flight: int) -> None:
        flight_id, before = self.both.key(flight).flight_id, self.model.state_of(flight)[0]
        got, told = self.both.step(
            lambda: self.workers[0].forget(flight_id), lambda: self.model.forget(flight)
        )
        assert got.value == told
        self.promises.moved("forget", before, self.model.state_of(flight)[0])

    def _lose(self, key: str) -> None:
        if key == "fence":
            self.promises.lost_fence()
        self.both.lose(key)
        self.both.look(self.model.us)

    def _lose_all(self) -> None:
        self.promises.lost_fence()
        self.both.flush()
        self.both.look(self.model.us)

    def _trim(self, flight: int) -> None:
        self.both.trim(flight)
        self.both.look(self.model.us)

    def _worker_dies(self, number: int) -> None:
        """With all that it knew; another one begins."""
        self.workers[number] = self.both.worker(f"w{number}")
        self.highest[number] = 0
        self.askers = [asker for asker in self.askers if asker.worker != number]

    def teardown(self) -> None:
        self.both.store.close()

    # -- small things ------------------------------------------------------------------------

    def _now(self, us: int) -> None:
        self.again = None
        self.both.look(us)
        for number, flight in enumerate(self.model.flights):
            self.promises.look(number, flight)

    def _ownership(self, own: Owned) -> Ownership:
        key = self.both.key(own.flight)
        return Ownership(key, own.token, own.fence, 1, Action.OWNER_NEW)


def _picked(items: list[Any], pick: int) -> Any:
    return items[-1 - pick % len(items)]
