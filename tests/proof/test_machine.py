"""The real scripts and a model of them in lockstep: any order of anything that can happen.

Everything is drawn: who asks, who writes, with whose token and fence, when, what is lost, what is
sent twice. After every step the answers and all that Redis holds must be the model's, every key
must have its TTL, and the invariants must hold. When something is found, the shortest way there is
printed, with the seed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, Phase, note, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from flightsvc.errors import FailureType
from flightsvc.flight.coordinator import Ask, FlightCoordinator, Ownership, Replayed
from flightsvc.flight.serializer import Envelope
from flightsvc.flight.state import Action, Failure
from tests.proof.deciding import Question, Told
from tests.proof.effort import LONG, first_seed, rounds
from tests.proof.lockstep import FLIGHTS, PACKED, Lockstep
from tests.proof.promises import Promises, blob_of
from tests.proof.world import DETECT, LIVE_TTL, Error
from tests.support.redis_server import RedisServer

WORKERS = 3
#: an index from the end of a list: 0 is the newest
PICK = st.integers(0, 5)
FLIGHT = st.integers(0, FLIGHTS - 1)
#: how a write may differ from what its owner would send
TWIST = st.sampled_from(["", "", "", "", "token", "fence up", "fence down"])
CHECKSUMS = st.sampled_from(["aaaaaaaa", "bbbbbbbb"])
FAILURES = st.builds(
    Failure,
    st.sampled_from([FailureType.PROVIDER, FailureType.TIMEOUT]),
    st.sampled_from(["BROKEN", "SLOW"]),
    st.booleans(),
    st.sampled_from([503, 504]),
    st.sampled_from([0, 0, 3_000, 25_000]),
)


@dataclass
class Asker:
    """A flight object of a worker."""

    worker: int
    token: str
    flight: int
    waited: int = 0


@dataclass(frozen=True)
class Owned:
    """An ownership that was granted once."""

    flight: int
    token: str
    fence: int


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
        self.again: Any = None

    # -- asking ------------------------------------------------------------------------------

    @rule(worker=st.integers(0, WORKERS - 1), flight=FLIGHT)
    def new_asker(self, worker: int, flight: int) -> None:
        self.askers.append(Asker(worker, f"t{len(self.askers)}", flight))
        self._ask(self.askers[-1], Question(flight, self.askers[-1].token, ""))

    @precondition(lambda self: self.askers)
    @rule(
        pick=PICK,
        replay=st.sampled_from([True, True, False]),
        may_own=st.sampled_from([True, True, True, False]),
        digest=st.sampled_from(["", "", "", "", "other"]),
    )
    def ask(self, pick: int, replay: bool, may_own: bool, digest: str) -> None:
        asker = _picked(self.askers, pick)
        question = Question(asker.flight, asker.token, "", digest, 0, asker.waited, replay, may_own)
        self._ask(asker, question)

    @precondition(lambda self: self.askers)
    @rule(pick=PICK, waited=PICK)
    def ask_having_waited(self, pick: int, waited: int) -> None:
        asker = _picked(self.askers, pick)
        fence = _picked(self.fences, waited)
        self._ask(asker, Question(asker.flight, asker.token, "", waited=fence))

    def _ask(self, asker: Asker, question: Question) -> None:
        asking = replace(
            question, worker=f"w{asker.worker}", highest=self.highest[asker.worker]
        )
        key = self.both.key(asking.flight, asking.digest)
        ask = Ask(key, asking.token, asking.waited, asking.replay, asking.may_own)
        worker = self.workers[asker.worker]
        before = self._state(asking.flight)
        got, told = self.both.step(
            lambda: worker.acquire_or_join(ask), lambda: self.model.acquire(asking)
        )
        self.both.agree(asking.flight, got, told)
        self.promises.asked(before, asking.waited, told.action)
        self._heard(asker, asking, told, before)
        if isinstance(got, Ownership):
            self.again = lambda: self._ask_again(asker, question, told)

    def _heard(
        self, asker: Asker, asking: Question, told: Told, before: tuple[str | None, int]
    ) -> None:
        number = asking.flight
        if told.fence:
            self.fences.append(told.fence)
        verb = "own" if told.action.startswith("OWNER") else "give_up"
        if verb == "own":
            self.promises.granted(number, asking.token, told.fence, asking.highest)
            if before[1] != told.fence:
                self.owned.append(Owned(number, asking.token, told.fence))
            else:
                verb = "asked again"
        self.promises.moved(verb, before[0], self._state(number)[0])
        if told.action == Action.FOLLOWER_WAIT:
            asker.waited = told.fence
        self.highest[asker.worker] = max(self.highest[asker.worker], told.fence)

    def _ask_again(self, asker: Asker, question: Question, told: Told) -> None:
        owned = len(self.owned)
        self._ask(asker, question)
        assert len(self.owned) == owned, "asked twice, granted twice"
        assert self.owned[-1].fence == told.fence

    # -- what owners write -------------------------------------------------------------------

    @precondition(lambda self: self.owned)
    @rule(pick=PICK, twist=TWIST)
    def mark_running(self, pick: int, twist: str) -> None:
        own = self._twisted(pick, twist)
        self._write(
            "mark_running",
            own,
            lambda by, o: by.mark_running(o),
            lambda: self.model.mark_running(own.flight, own.token, own.fence),
        )

    @precondition(lambda self: self.owned)
    @rule(pick=PICK, twist=TWIST, checksum=CHECKSUMS)
    def finish(self, pick: int, twist: str, checksum: str) -> None:
        own = self._twisted(pick, twist)
        envelope = Envelope(blob_of(checksum), PACKED[0], PACKED[1], checksum)
        ack = self._write(
            "finish",
            own,
            lambda by, o: by.finish(o, envelope),
            lambda: self.model.finish(own.flight, own.token, own.fence, envelope.blob, checksum),
        )
        if ack == "OK":
            self.promises.finished(own.flight, own.fence, checksum)

    @precondition(lambda self: self.owned)
    @rule(pick=PICK, twist=TWIST, failure=FAILURES)
    def fail(self, pick: int, twist: str, failure: Failure) -> None:
        own = self._twisted(pick, twist)
        kind, wait = failure.error_type.value, failure.retry_after_ms
        error = Error(kind, failure.code, failure.retryable, failure.status, wait)
        self._write(
            "fail",
            own,
            lambda by, o: by.fail(o, failure),
            lambda: self.model.fail(own.flight, own.token, own.fence, error),
        )

    @precondition(lambda self: self.owned)
    @rule(pick=PICK, twist=TWIST)
    def release(self, pick: int, twist: str) -> None:
        own = self._twisted(pick, twist)
        self._write(
            "release",
            own,
            lambda by, o: by.release(o),
            lambda: self.model.release(own.flight, own.token, own.fence),
        )

    @precondition(lambda self: self.owned)
    @rule(pick=PICK, twist=TWIST)
    def abandon(self, pick: int, twist: str) -> None:
        own = self._twisted(pick, twist)
        self._write(
            "abandon",
            own,
            lambda by, o: by.abandon(o),
            lambda: self.model.abandon(own.flight, own.token, own.fence),
        )

    @precondition(lambda self: self.owned)
    @rule(pick=PICK, twist=TWIST, ahead=st.integers(-1, 1), chunks=st.integers(0, 3))
    def append(self, pick: int, twist: str, ahead: int, chunks: int) -> None:
        own = self._twisted(pick, twist)
        meta = self.model.flights[own.flight].meta
        first = max(0, (meta.seq if meta else 0) + ahead)
        data = [f"chunk {first + n}".encode() for n in range(chunks)]
        self._write(
            "append",
            own,
            lambda by, o: by.append(o, first, data),
            lambda: self.model.append(own.flight, own.token, own.fence, first, data),
        )

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

    def _write(self, verb: str, own: Owned, real: Any, model: Any) -> str:
        sent = self._ownership(own)
        before = self._state(own.flight)[0]
        got, told = self.both.step(lambda: real(self.workers[0], sent), model)
        if isinstance(told, Told):
            assert (got[0].value, got[1]) == (told.action, told.attempt)
        else:
            assert got.value == told
        ack = told.action if isinstance(told, Told) else told
        self.promises.written(verb, own.flight, own.token, own.fence, ack)
        self.promises.moved(verb, before, self._state(own.flight)[0])
        self.again = lambda: self._write_again(verb, own, real, model, ack)
        return ack

    def _write_again(self, verb: str, own: Owned, real: Any, model: Any, ack: str) -> None:
        """The reply was lost: nothing changes twice, and the owner hears that it was done."""
        before = self._core(own.flight)
        second = self._write(verb, own, real, model)
        assert self._core(own.flight) == before
        known = {"release": "STALE", "abandon": "LOST"}
        assert second == (known.get(verb, ack) if ack == "OK" else ack)

    # -- other things that happen ------------------------------------------------------------

    @precondition(lambda self: self.again is not None)
    @rule()
    def send_the_last_again(self) -> None:
        again, self.again = self.again, None
        again()

    @rule(flight=FLIGHT, right=st.booleans(), fence=PICK, checksum=CHECKSUMS)
    def discard(self, flight: int, right: bool, fence: int, checksum: str) -> None:
        meta = self.model.flights[flight].meta
        known = meta.result_fence if right and meta else _picked(self.fences, fence)
        seen = Replayed(known, blob_of(checksum))
        got, told = self.both.step(
            lambda: self.workers[0].discard(self.both.key(flight), seen),
            lambda: self.model.discard(flight, known, seen.envelope),
        )
        assert got.value == told

    @rule(flight=FLIGHT)
    def inspect(self, flight: int) -> None:
        meta = self.model.flights[flight].meta
        now = self.model.ms
        view, _ = self.both.step(
            lambda: self.workers[0].inspect(self.both.key(flight).flight_id), lambda: None
        )
        assert (view is None) == (meta is None)
        if view is not None and meta is not None:
            assert (view.state.value, view.fence) == (meta.state, meta.fence)
            assert view.heartbeat_age_ms == now - meta.heartbeat
            assert view.age_ms == now - meta.created

    @rule(ms=st.sampled_from([0, 1, 900, 2_000, DETECT, DETECT + 1, 12_000, LIVE_TTL]))
    def later(self, ms: int) -> None:
        self._now(self.model.us + ms * 1000)

    @rule(pick=st.integers(0, 30), off=st.sampled_from([-1, 0, 1]))
    def at_an_edge(self, pick: int, off: int) -> None:
        """Just before, at, or just after a moment at which something changes."""
        edges = sorted(at for at in self._edges() if at + off > self.model.ms)
        if edges:
            self._now((edges[pick % len(edges)] + off) * 1000)

    @rule(ms=st.sampled_from([1, 900, DETECT, DETECT + 2, 60_000]))
    def clock_set_back(self, ms: int) -> None:
        self.promises.set_back()
        self._now(self.model.us - ms * 1000)

    @rule(worker=st.integers(0, WORKERS - 1))
    def worker_dies(self, worker: int) -> None:
        """Nothing that it knew is left; another one begins."""
        self.workers[worker] = self.both.worker(f"w{worker}")
        self.highest[worker] = 0
        self.askers = [asker for asker in self.askers if asker.worker != worker]

    @rule(part=st.sampled_from(["meta", "result", "events", "interest"]), flight=FLIGHT)
    def key_is_lost(self, part: str, flight: int) -> None:
        self._lose(f"{part}:{flight}")

    @rule(key=st.sampled_from(["live", "fence"]))
    def shared_key_is_lost(self, key: str) -> None:
        if key == "fence":
            self.promises.lost_fence()
        self._lose(key)

    @rule(flight=FLIGHT)
    def stream_is_trimmed(self, flight: int) -> None:
        self.again = None
        self.both.trim(flight)
        events = self.model.flights[flight].events
        if events is not None:
            events.events = []
        self.both.look(self.model.us)

    @rule()
    def all_is_lost(self) -> None:
        self.again = None
        self.promises.lost_fence()
        self.both.flush()
        for key in list(self.model.keys()):
            self.model.drop(key)

    # -- small things ------------------------------------------------------------------------

    def teardown(self) -> None:
        note(f"{len(self.owned)} ownerships")
        self.both.store.close()

    def _now(self, us: int) -> None:
        self.again = None
        self.both.look(us)
        for number, flight in enumerate(self.model.flights):
            self.promises.look(number, flight)

    def _lose(self, key: str) -> None:
        self.again = None
        self.both.lose(key)
        self.model.drop(key)

    def _edges(self) -> set[int]:
        edges = set(self.model.expires.values())
        edges |= {at + LIVE_TTL for at in self.model.live.values()}
        for flight in self.model.flights:
            edges |= set(flight.interest.values())
            if flight.meta is not None:
                edges |= {flight.meta.heartbeat + DETECT, flight.meta.deadline}
                edges |= {flight.meta.error.not_before} if flight.meta.error else set()
        return edges

    def _state(self, flight: int) -> tuple[str | None, int]:
        meta = self.model.flights[flight].meta
        return (meta.state, meta.fence) if meta else (None, 0)

    def _core(self, number: int) -> Any:
        """What a repeated write must leave alone: all but the heartbeat and leases."""
        flight = self.model.flights[number]
        meta = flight.meta and replace(flight.meta, heartbeat=0)
        return meta, flight.result, flight.events and list(flight.events.events)

    def _twisted(self, pick: int, twist: str) -> Owned:
        own = _picked(self.owned, pick)
        if twist == "token":
            return replace(own, token="nobody")
        off = {"fence up": 1, "fence down": -1}.get(twist, 0)
        return replace(own, fence=own.fence + off)

    def _ownership(self, own: Owned) -> Ownership:
        key = self.both.key(own.flight)
        return Ownership(key, own.token, own.fence, 1, Action.OWNER_NEW)


def _picked(items: list[Any], pick: int) -> Any:
    return items[-1 - pick % len(items)]


def test_the_scripts_do_what_the_model_does(own_redis: RedisServer) -> None:
    number = first_seed()
    print(f"PROOF_SEED={number}")
    shape = settings(
        max_examples=rounds(60),
        stateful_step_count=40,
        deadline=None,
        derandomize=False,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    machine = seed(number)(lambda: Machine(own_redis))
    run_machine(machine, settings=shape)
