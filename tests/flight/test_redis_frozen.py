"""H15: Redis is frozen, not closed: nobody waits for it, and nothing is called twice for it."""

from __future__ import annotations

import pytest

from flightsvc.errors import CallFailed
from flightsvc.flight import FlightKey, SingleFlight
from tests.flight.conftest import Worker
from tests.flight.flying import (
    QUICK,
    STEADY,
    Caller,
    Model,
    ask,
    await_following,
    count,
    roles,
    values,
)
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "s1", "an answer")
#: a time-out of Redis, and much room for a slow machine
LATE_S = 1.5


def state(flights: SingleFlight, key: FlightKey = KEY) -> str | None:
    """The flight's state as Redis has it."""
    view = flights.inspect(key.flight_id)
    return view.state.value if view else None


def asked(flights: SingleFlight) -> float:
    """How often a worker has asked Redis for a flight."""
    return count(flights, "redis.time.acquire")


def test_h15_frozen_during_a_call_its_callers_are_answered_and_it_is_stored_later(
    worker: Worker, own_redis: RedisServer
) -> None:
    one, two = worker(url=own_redis.url, **STEADY), worker(url=own_redis.url, **STEADY)
    model = Model(held=True)
    callers = ask(one, KEY, model, 5)
    model.began.wait()
    own_redis.freeze()
    model.let_go()
    assert values(callers) == [{"call": 1}]
    assert max(caller.answered_at for caller in callers) - model.ended_at < LATE_S
    # who asks the same meanwhile has the answer too
    assert one.run(KEY, model).value == {"call": 1}
    # when Redis goes on, it is told
    own_redis.thaw()
    wait_until(lambda: state(two) == "SUCCEEDED", 5)
    assert two.run(KEY, model).value == {"call": 1}
    assert model.calls == 1


@pytest.mark.parametrize("warm", [True, False], ids=["connected", "never connected"])
def test_h15_frozen_from_the_start_one_caller_waits_for_it_and_the_others_do_not(
    worker: Worker, own_redis: RedisServer, warm: bool
) -> None:
    one = worker(url=own_redis.url, **STEADY)
    if warm:
        one.run(FlightKey("scoring", "warm"), Model())
    own_redis.freeze()
    first = Caller(one, KEY, Model())
    assert first.result().value == {"call": 1}
    assert first.took_s < LATE_S
    assert (first.result().role, first.result().fence) == ("local", 0)
    before = asked(one)
    later = [Caller(one, FlightKey("scoring", "later", n), Model()) for n in range(50)]
    assert values(later) == [{"call": 1}]
    # they did not even ask
    assert asked(one) == before
    assert one.coordination == "degraded"


def test_h15_many_questions_at_once_do_not_queue_up_for_a_frozen_redis(
    worker: Worker, own_redis: RedisServer
) -> None:
    one = worker(url=own_redis.url, **STEADY)
    one.run(FlightKey("scoring", "warm"), Model())
    own_redis.freeze()
    callers = [Caller(one, FlightKey("scoring", n), Model()) for n in range(60)]
    assert values(callers) == [{"call": 1}]
    # one time-out of 250 ms for all of them together
    assert max(caller.took_s for caller in callers) < 1


def test_h15_callers_of_one_worker_still_share_a_call(
    worker: Worker, own_redis: RedisServer
) -> None:
    one = worker(url=own_redis.url, **STEADY)
    own_redis.freeze()
    model = Model(takes_s=0.2)
    callers = ask(one, KEY, model, 30)
    assert values(callers) == [{"call": 1}]
    assert roles(callers) == ["local"] * 30
    assert one.run(KEY, model).role == "l1"


# -- an acquire that timed out may still have happened --------------------------------------


def test_h15_a_call_that_still_runs_when_redis_goes_on_becomes_a_flight_of_all(
    worker: Worker, own_redis: RedisServer
) -> None:
    one, two = worker(url=own_redis.url, **STEADY), worker(url=own_redis.url, **STEADY)
    one.run(FlightKey("scoring", "warm"), Model())
    own_redis.freeze()
    model = Model(held=True)
    callers = ask(one, KEY, model, 3)
    model.began.wait()
    own_redis.thaw()
    wait_until(lambda: state(two) == "RUNNING", 5)
    callers += ask(two, KEY, model, 3)
    await_following(two)
    model.let_go()
    assert values(callers) == [{"call": 1}]
    assert roles(callers) == ["follower"] * 5 + ["owner"]
    assert len({caller.result().fence for caller in callers}) == 1
    assert model.calls == 1


def test_h15_a_call_that_ended_before_redis_goes_on_is_stored(
    worker: Worker, own_redis: RedisServer
) -> None:
    one, two = worker(url=own_redis.url, **STEADY), worker(url=own_redis.url, **STEADY)
    one.run(FlightKey("scoring", "warm"), Model())
    own_redis.freeze()
    model = Model()
    assert one.run(KEY, model).role == "local"
    own_redis.thaw()
    # nobody asks this worker anything more, and yet it is settled
    wait_until(lambda: state(two) == "SUCCEEDED", 5)
    assert two.run(KEY, model).value == {"call": 1}
    assert model.calls == 1


def test_h15_a_call_that_failed_before_redis_goes_on_is_given_back(
    worker: Worker, own_redis: RedisServer
) -> None:
    one, two = worker(url=own_redis.url, **STEADY), worker(url=own_redis.url, **STEADY)
    one.run(FlightKey("scoring", "warm"), Model())
    own_redis.freeze()
    assert isinstance(Caller(one, KEY, Model(error=ValueError())).error(), CallFailed)
    own_redis.thaw()
    # then another worker need not wait for a lease to end
    late = Caller(two, KEY, Model(value="of the other worker"))
    assert late.result().value == "of the other worker"
    assert late.took_s < 3


# -- followers --------------------------------------------------------------------------------


def test_a_follower_outwaits_a_redis_that_is_away_for_a_moment(
    worker: Worker, own_redis: RedisServer
) -> None:
    one, two = worker(url=own_redis.url, **STEADY), worker(url=own_redis.url, **STEADY)
    model = Model(held=True)
    callers = ask(one, KEY, model)
    model.began.wait()
    callers += ask(two, KEY, model, 5)
    await_following(two)
    own_redis.freeze()
    wait_until(lambda: count(two, "coordination.up") == 0, 5)
    model.let_go()
    callers[0].result()
    assert all(caller.waits for caller in callers[1:])
    own_redis.thaw()
    assert values(callers) == [{"call": 1}]
    assert model.calls == 1
    assert count(two, "flight.fallbacks.scoring") == 0


def test_a_follower_goes_on_alone_when_redis_stays_away(
    worker: Worker, own_redis: RedisServer
) -> None:
    one, two = worker(url=own_redis.url, **QUICK), worker(url=own_redis.url, **QUICK)
    model, second = Model(held=True), Model()
    owner = Caller(one, KEY, model)
    model.began.wait()
    followers = ask(two, KEY, second, 5)
    await_following(two)
    own_redis.freeze()
    assert values(followers) == [{"call": 1}]
    assert roles(followers) == ["local"] * 5
    assert min(caller.took_s for caller in followers) > QUICK["takeover_detect_ms"] / 1000
    model.let_go()
    assert owner.result().value == {"call": 1}
    assert (model.calls, second.calls) == (1, 1)


# -- failures of the call are never failures of coordination ----------------------------------


def test_a_call_that_fails_while_redis_is_frozen_is_not_repeated(
    worker: Worker, own_redis: RedisServer
) -> None:
    one, two = worker(url=own_redis.url, **STEADY), worker(url=own_redis.url, **STEADY)
    model = Model(held=True, error=ValueError())
    callers = ask(one, KEY, model, 3)
    model.began.wait()
    followers = ask(two, KEY, model, 3)
    await_following(two)
    own_redis.freeze()
    model.let_go()
    for caller in callers:
        assert isinstance(caller.error(LATE_S), CallFailed)
    own_redis.thaw()
    for follower in followers:
        assert isinstance(follower.error(), CallFailed)
    assert model.calls == 1
