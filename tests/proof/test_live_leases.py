"""Interleavings about leases that live: those of followers against a cancel, an owner's own."""

from __future__ import annotations

import gevent

from flightsvc.flight import FlightKey
from flightsvc.flight.coordinator import FlightCoordinator
from flightsvc.flight.state import Ack
from tests.faults.incident import Harm
from tests.faults.proxy import Proxy
from tests.faults.resp import script
from tests.flight.conftest import Worker
from tests.flight.flying import QUICK, Caller, Model, ask, await_following, count, values
from tests.processes import wait_until
from tests.proof.steps import KEY, beat, own
from tests.support.redis_server import RedisServer

#: nobody is taken over for being silent
STEADY = {"heartbeat_ms": 100, "takeover_detect_ms": 6_000}

# -- cancelling a flight against joining it --------------------------------------------------


def test_a_flight_that_was_joined_is_not_cancelled(
    worker: Worker, owner: FlightCoordinator
) -> None:
    # given an owner whose last caller has gone, and a follower that came before it says so
    owned = own(owner)
    follower = Caller(two := worker(**QUICK), KEY, model := Model())
    await_following(two)
    # when it wants to cancel, then it may not, and its end reaches the follower
    assert owner.abandon(owned) is Ack.JOINED
    assert beat(owner, owned) == 1
    assert owner.release(owned) is Ack.OK
    assert follower.result().value == {"call": 1}
    assert model.calls == 1


def test_who_joins_a_cancelled_flight_begins_a_new_one(
    worker: Worker, owner: FlightCoordinator
) -> None:
    owned = own(owner)
    assert owner.abandon(owned) is Ack.OK
    result = worker(**QUICK).run(KEY, model := Model())
    assert (result.value, result.role) == ({"call": 1}, "owner")
    assert result.fence > owned.fence
    # and what the cancelled call might still say is refused
    assert owner.release(owned) is Ack.STALE
    assert model.calls == 1


def test_a_follower_without_a_lease_notices_that_its_flight_was_cancelled(
    worker: Worker, redis_server: RedisServer, owner: FlightCoordinator, names: dict[str, str]
) -> None:
    # given a follower whose lease is not there, as on a full server
    owned = own(owner)
    follower = Caller(two := worker(**STEADY), KEY, model := Model())
    await_following(two)
    redis_server.client().delete(names["interest"])
    # when the flight is cancelled, then it looks again, long before any lease ends, and calls
    assert owner.abandon(owned) is Ack.OK
    assert follower.result().value == {"call": 1}
    assert follower.took_s < 3
    assert model.calls == 1


# -- the breaker around coordination opens while leases live ---------------------------------


class Broken:
    """An owner in a worker whose acquires are answered no more, and followers elsewhere.

    Nor are its probes: only heartbeats and ends get through.
    """

    def __init__(self, worker: Worker, line: Proxy) -> None:
        patient = {"heartbeat_ms": 100, "takeover_detect_ms": 1_500}
        self.one = worker(line.url, **patient, redis_timeout_ms=100)
        self.two = worker(**patient)
        self.model = Model(held=True)
        self.callers = ask(self.one, KEY, self.model, 2)
        self.model.began.wait()
        self.callers += ask(self.two, KEY, self.model, 2)
        await_following(self.two)
        for verb in ("acquire", "wake"):
            line.plan(Harm.HOLD, script(verb), times=None)
        self.line = line

    def asks_locally(self, questions: int) -> None:
        """New questions go on without Redis, each after its acquire was lost."""
        for number in range(questions):
            wait_until(lambda: count(self.one, "coordination.up") == 1, 5)
            key = FlightKey("scoring", "new", number)
            result = self.one.run(key, Model())
            assert (result.role, result.fence) == ("local", 0)

    def outlive_a_lease(self) -> None:
        """Wait for longer than a lease of the owner lives without heartbeats."""
        gevent.sleep(2.0)

    def check(self) -> None:
        """The flight was its owner's all the time, and its end passes too."""
        assert count(self.two, "flight.actions.scoring.owner_takeover") == 0
        assert self.model.calls == 1
        self.model.let_go()
        assert values(self.callers) == [{"call": 1}]
        assert len({caller.result().fence for caller in self.callers}) == 1
        assert count(self.one, "flight.ends.scoring.stored") == 1
        self.line.heal()


def test_a_breaker_that_opens_over_live_leases_costs_no_owner_its_flight(
    worker: Worker, line: Proxy
) -> None:
    broken = Broken(worker, line)
    broken.asks_locally(2)
    broken.outlive_a_lease()
    broken.check()


def test_many_acquires_without_a_reply_hold_up_no_heartbeat(worker: Worker, line: Proxy) -> None:
    # given so many of them that asking for each in turn would take longer than a lease lives
    broken = Broken(worker, line)
    broken.asks_locally(20)
    broken.outlive_a_lease()
    broken.check()
