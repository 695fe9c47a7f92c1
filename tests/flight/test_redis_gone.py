"""H14, H15: Redis is killed, restarted without its data, or was never there."""

from __future__ import annotations

from collections.abc import Iterator

import gevent
import pytest

from flightsvc.errors import CallFailed, CoordinationUnavailable, SettingsError
from flightsvc.flight import FlightKey, SingleFlight
from flightsvc.settings import Settings
from tests.faults.proxy import Proxy
from tests.flight.conftest import Worker
from tests.flight.flying import STEADY, Caller, Model, ask, await_following, count, roles, values
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "s1", "an answer")


@pytest.fixture
def absent_redis() -> Iterator[RedisServer]:
    """A server that is not started yet."""
    server = RedisServer()
    yield server
    server.__exit__(None, None, None)


# -- restarted without data -------------------------------------------------------------------


def test_h14_redis_restarts_without_data_and_the_owner_regains_its_flight(
    worker: Worker, own_redis: RedisServer
) -> None:
    one, two = worker(url=own_redis.url, **STEADY), worker(url=own_redis.url, **STEADY)
    model = Model(held=True)
    callers = ask(one, KEY, model, 3)
    model.began.wait()
    own_redis.kill()
    wait_until(lambda: count(one, "redis.errors.connection") >= 2)
    own_redis.start()
    wait_until(lambda: count(one, "flight.lost.scoring.regained"), 5)
    # who asks now joins the call that was being made all the time
    callers += ask(two, KEY, model, 3)
    await_following(two)
    model.let_go()
    assert values(callers) == [{"call": 1}]
    assert callers[0].result().fence > model.fences[0]
    assert worker(url=own_redis.url).run(KEY, model).role == "replay"
    assert model.calls == 1


def test_h14_redis_restarts_without_data_under_followers(
    worker: Worker, own_redis: RedisServer
) -> None:
    one, two = worker(url=own_redis.url, **STEADY), worker(url=own_redis.url, **STEADY)
    model = Model(takes_s=1.2)
    callers = ask(one, KEY, model, 3)
    model.began.wait()
    callers += ask(two, KEY, model, 3)
    await_following(two)
    own_redis.kill()
    own_redis.start()
    # whichever worker is first has it; the other follows
    assert len(values(callers)) == 1
    assert model.calls <= 2
    assert len({caller.result().fence for caller in callers}) == 1


# -- gone for good ----------------------------------------------------------------------------


def test_an_answer_that_cannot_be_stored_reaches_its_callers_at_once(
    worker: Worker, own_redis: RedisServer
) -> None:
    one = worker(url=own_redis.url, **STEADY)
    model = Model(held=True)
    callers = ask(one, KEY, model, 5)
    model.began.wait()
    own_redis.kill()
    model.let_go()
    assert values(callers) == [{"call": 1}]
    assert max(caller.answered_at for caller in callers) - model.ended_at < 1
    assert one.run(KEY, model).value == {"call": 1}
    assert model.calls == 1


def test_a_call_that_fails_when_redis_is_gone_is_not_repeated(
    worker: Worker, own_redis: RedisServer
) -> None:
    one = worker(url=own_redis.url, **STEADY)
    model = Model(held=True, error=ValueError())
    callers = ask(one, KEY, model, 5)
    model.began.wait()
    own_redis.kill()
    model.let_go()
    for caller in callers:
        assert isinstance(caller.error(1), CallFailed)
    assert model.calls == 1


def test_a_worker_that_closes_gives_up_telling_redis(
    worker: Worker, own_redis: RedisServer
) -> None:
    one = worker(url=own_redis.url, **STEADY)
    model = Model(held=True)
    caller = Caller(one, KEY, model)
    model.began.wait()
    own_redis.kill()
    model.let_go()
    caller.result()
    with gevent.Timeout(3):
        one.close()
    before = count(one, "redis.time.finish")
    gevent.sleep(0.8)
    assert count(one, "redis.time.finish") <= before


# -- absent at the start ----------------------------------------------------------------------


def test_h15_redis_is_absent_at_the_start_and_coordination_comes_with_it(
    worker: Worker, absent_redis: RedisServer
) -> None:
    one, two = worker(url=absent_redis.url, **STEADY), worker(url=absent_redis.url, **STEADY)
    # without it, each worker joins its own callers
    model = Model(takes_s=0.1)
    callers = ask(one, KEY, model, 5) + ask(two, KEY, model, 5)
    values(callers)
    assert roles(callers) == ["local"] * 10
    assert {caller.result().fence for caller in callers} == {0}
    assert model.calls == 2
    assert (one.coordination, two.coordination) == ("degraded", "degraded")
    # with it, they share a call
    absent_redis.start()
    wait_until(lambda: (one.coordination, two.coordination) == ("ok", "ok"), 5)
    model, key = Model(takes_s=0.1), FlightKey("scoring", "later")
    assert values(ask(one, key, model, 5) + ask(two, key, model, 5)) == [{"call": 1}]
    assert model.calls == 1


def test_h15_coordination_comes_back_without_anybody_looking(
    worker: Worker, absent_redis: RedisServer
) -> None:
    one = worker(url=absent_redis.url, **STEADY)
    assert one.run(KEY, Model()).role == "local"
    absent_redis.start()
    wait_until(lambda: count(one, "coordination.up") == 1, 5)


def test_a_flight_cannot_be_looked_at_without_redis(
    worker: Worker, absent_redis: RedisServer
) -> None:
    with pytest.raises(CoordinationUnavailable):
        worker(url=absent_redis.url).inspect(KEY.flight_id)


# -- the line between one worker and Redis ----------------------------------------------------


def test_a_follower_that_is_cut_off_for_a_moment_makes_no_call(
    worker: Worker, own_redis: RedisServer
) -> None:
    with Proxy(own_redis) as wire:
        one, two = worker(url=own_redis.url, **STEADY), worker(url=wire.url, **STEADY)
        model = Model(held=True)
        callers = ask(one, KEY, model)
        model.began.wait()
        callers += ask(two, KEY, model, 5)
        await_following(two)
        wire.cut()
        wait_until(lambda: count(two, "coordination.up") == 0, 5)
        # the owner ends while the follower cannot hear it
        model.let_go()
        callers[0].result()
        wire.mend()
        assert values(callers) == [{"call": 1}]
        assert model.calls == 1


def test_an_owner_that_is_cut_off_for_a_moment_keeps_its_flight(
    worker: Worker, own_redis: RedisServer
) -> None:
    with Proxy(own_redis) as wire:
        one, two = worker(url=wire.url, **STEADY), worker(url=own_redis.url, **STEADY)
        model = Model(held=True)
        callers = ask(one, KEY, model)
        model.began.wait()
        callers += ask(two, KEY, model, 5)
        await_following(two)
        wire.cut()
        model.let_go()
        assert callers[0].result(1).value == {"call": 1}
        wire.mend()
        # its answer is told as soon as that is possible
        assert values(callers) == [{"call": 1}]
        assert model.calls == 1


# -- mode `local` -----------------------------------------------------------------------------


def test_in_mode_local_there_is_no_redis_at_all() -> None:
    one, two = SingleFlight(Settings(mode="local")), SingleFlight(Settings(mode="local"))
    model = Model(takes_s=0.1)
    callers = ask(one, KEY, model, 20)
    assert values(callers) == [{"call": 1}]
    assert roles(callers) == ["local"] * 20
    assert one.run(KEY, model).role == "l1"
    assert one.run(KEY, model, replay=False).value == {"call": 2}
    assert two.run(KEY, model).value == {"call": 3}
    assert isinstance(Caller(one, KEY, Model(error=ValueError()), replay=False).error(), CallFailed)
    assert (one.coordination, one.inspect(KEY.flight_id)) == ("off", None)
    one.close()
    two.close()


def test_other_modes_need_a_redis() -> None:
    with pytest.raises(SettingsError, match="FLIGHTSVC_REDIS_URL"):
        SingleFlight(Settings())
