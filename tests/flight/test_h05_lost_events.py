"""H05, H14: events and keys vanish under waiting followers; each looks again.

The owner stays alive and its lease is long, so that nothing but the look can help.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import redis

from flightsvc.flight import FlightKey, SingleFlight
from flightsvc.store import Names
from tests.faults.proxy import Proxy
from tests.flight.conftest import Worker
from tests.flight.flying import STEADY, Caller, Model, ask, await_following, count, values
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "s1", "an answer")
Harm = Callable[[redis.Redis, dict[str, str]], object]


@pytest.fixture
def names(namespace: str) -> dict[str, str]:
    """The Redis names of the flight."""
    return Names(namespace, 16).flight(KEY.flight_id)


def delete_events(client: redis.Redis, names: dict[str, str]) -> object:
    return client.delete(names["events"])


def trim_events(client: redis.Redis, names: dict[str, str]) -> object:
    return client.xtrim(names["events"], maxlen=0, approximate=False)


def remake_events_with_lower_ids(client: redis.Redis, names: dict[str, str]) -> object:
    pipe = client.pipeline(transaction=True)
    pipe.delete(names["events"])
    pipe.xadd(names["events"], {"kind": "owned", "fence": "1"}, id="1-1")
    return pipe.execute()


def delete_state(client: redis.Redis, names: dict[str, str]) -> object:
    return client.delete(names["meta"], names["interest"], names["live"])


def delete_flight(client: redis.Redis, names: dict[str, str]) -> object:
    return client.delete(*names.values())


def fly(one: SingleFlight, two: SingleFlight, model: Model) -> list[Caller]:
    """An owner in one worker and ten followers in another."""
    callers = ask(one, KEY, model)
    model.began.wait()
    callers += ask(two, KEY, model, 10)
    await_following(two)
    return callers


@pytest.mark.parametrize(
    "harm", [delete_events, trim_events, remake_events_with_lower_ids], ids=lambda f: f.__name__
)
def test_h05_events_vanish_before_the_end(
    worker: Worker, redis_server: RedisServer, names: dict[str, str], harm: Harm
) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    model = Model(held=True)
    callers = fly(one, two, model)
    harm(redis_server.client(), names)
    model.let_go()
    assert values(callers) == [{"call": 1}]
    assert max(caller.answered_at for caller in callers) - model.ended_at < 1
    assert model.calls == 1


@pytest.mark.one_server
@pytest.mark.parametrize(
    "harm", [delete_events, trim_events, remake_events_with_lower_ids], ids=lambda f: f.__name__
)
def test_h05_events_vanish_between_the_end_and_the_read(
    worker: Worker, redis_server: RedisServer, names: dict[str, str], harm: Harm
) -> None:
    with Proxy(redis_server) as wire:
        one, two = worker(**STEADY), worker(url=wire.url, **STEADY)
        model = Model(held=True)
        callers = ask(one, KEY, model)
        model.began.wait()
        # given followers whose read is still on its way when the owner ends
        read = wire.hold(b"XREAD")
        callers += ask(two, KEY, model, 10)
        assert read.met.wait(5)
        model.let_go()
        callers[0].result()
        # when the events are gone before the read arrives
        harm(redis_server.client(), names)
        read.let_go()
        began_at = time.monotonic()
        # then all have the answer within a second
        assert values(callers) == [{"call": 1}]
        assert max(caller.answered_at for caller in callers) - began_at < 1
        assert model.calls == 1


def test_h14_the_state_vanishes_and_the_owner_regains_its_flight(
    worker: Worker, redis_server: RedisServer, names: dict[str, str]
) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    model = Model(held=True)
    callers = fly(one, two, model)
    before = one.inspect(KEY.flight_id)
    # when only the state is gone: the followers' stream is not, and they go on waiting
    delete_state(redis_server.client(), names)
    # then the owner notices at its next heartbeat, and goes on under a higher fence
    wait_until(lambda: count(one, "flight.lost.scoring.regained"), 2)
    after = one.inspect(KEY.flight_id)
    assert before is not None
    assert after is not None
    assert after.fence > before.fence
    assert after.state == "RUNNING"
    model.let_go()
    assert values(callers) == [{"call": 1}]
    assert callers[0].result().fence == after.fence
    assert model.calls == 1


def test_h14_everything_vanishes_and_there_are_two_calls_at_most(
    worker: Worker, redis_server: RedisServer, names: dict[str, str]
) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    model = Model(takes_s=0.8)
    callers = fly(one, two, model)
    delete_flight(redis_server.client(), names)
    assert len(values(callers)) == 1
    assert model.calls <= 2
    assert len(set(model.fences)) == model.calls


@pytest.mark.one_server
def test_h14_everything_vanishes_between_the_end_and_the_fetch(
    worker: Worker, redis_server: RedisServer, names: dict[str, str]
) -> None:
    with Proxy(redis_server) as wire:
        one, two = worker(**STEADY), worker(url=wire.url, **STEADY)
        model = Model(held=True)
        owner = Caller(one, KEY, model)
        model.began.wait()
        read = wire.hold(b"XREAD")
        followers = ask(two, KEY, model, 10)
        assert read.met.wait(5)
        model.let_go()
        first = owner.result()
        delete_flight(redis_server.client(), names)
        read.let_go()
        # the answer is nowhere any more: one of the followers asks the model once more
        assert values(followers) == [{"call": 2}]
        assert model.calls == 2
        assert followers[0].result().fence > first.fence


def test_h14_an_answer_that_is_evicted_alone_is_asked_for_again(
    worker: Worker, redis_server: RedisServer, names: dict[str, str]
) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    model = Model()
    first = one.run(KEY, model)
    redis_server.client().delete(names["result"])
    second = two.run(KEY, model)
    assert (first.value, second.value) == ({"call": 1}, {"call": 2})
    assert second.fence > first.fence
    assert two.run(KEY, model).value == {"call": 2}
