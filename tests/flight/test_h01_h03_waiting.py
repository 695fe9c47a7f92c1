"""Waiting and waking: no answer is missed, no waiter outlasts its deadline."""

from __future__ import annotations

import hashlib
import time

import pytest

from flightsvc.errors import WaitTimeout
from flightsvc.flight import FlightKey
from flightsvc.store.scripts import source
from tests.faults.proxy import Proxy
from tests.flight.conftest import Worker
from tests.flight.flying import STEADY, Caller, Model, ask, await_following, values
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "s1", "an answer")
#: far below one blocking read, which is what a missed event would cost
SOON_S = 0.3
ACQUIRE = hashlib.sha1(source("acquire")).hexdigest().encode()


def test_h01_a_follower_outwaits_many_blocking_reads(worker: Worker) -> None:
    # given a model slower than several blocking reads and than the time-out of a command
    one, two = worker(**STEADY), worker(**STEADY)
    model = Model(takes_s=1.2)
    owner = Caller(one, KEY, model)
    model.began.wait()
    # when a follower elsewhere has little patience more than that
    follower = Caller(two, KEY, model, deadline_s=1.5)
    # then it is answered when the model is done
    assert follower.result().value == owner.result().value
    assert follower.answered_at - model.ended_at < 0.5
    assert model.calls == 1


@pytest.mark.parametrize("elsewhere", [False, True], ids=["owner's worker", "another worker"])
def test_h01_a_deadline_is_answered_in_time_and_the_flight_goes_on(
    worker: Worker, elsewhere: bool
) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    model = Model(held=True)
    patient = Caller(one, KEY, model)
    model.began.wait()
    # when the model is silent for longer than a caller waits
    hasty = Caller(two if elsewhere else one, KEY, model, deadline_s=0.6)
    # then the caller is told so, not much later than it asked for
    error = hasty.error()
    assert isinstance(error, WaitTimeout)
    assert error.retryable
    assert 0.6 <= hasty.took_s < 1.1
    # and the flight was not harmed
    model.let_go()
    assert patient.result().value == {"call": 1}
    assert two.run(KEY, model).value == {"call": 1}


def test_h01_every_caller_has_a_deadline_of_its_own(worker: Worker) -> None:
    one = worker(**STEADY)
    model = Model(held=True)
    hasty = [Caller(one, KEY, model, deadline_s=0.1 + n / 50) for n in range(30)]
    patient = Caller(one, KEY, model, deadline_s=5)
    for n, caller in enumerate(hasty):
        assert isinstance(caller.error(), WaitTimeout)
        assert 0.1 + n / 50 <= caller.took_s < 0.6 + n / 50
    model.let_go()
    assert patient.result().value == {"call": 1}


@pytest.mark.one_server
def test_h02_the_reply_to_an_acquire_is_lost_and_the_owner_does_not_wait_for_itself(
    worker: Worker, redis_server: RedisServer
) -> None:
    with Proxy(redis_server) as wire:
        one, two = worker(url=wire.url, **STEADY), worker(**STEADY)
        one.run(FlightKey("scoring", "warm"), Model())
        # given an acquire that reaches Redis, and a connection that breaks before its reply
        incident = wire.lose_reply(ACQUIRE)
        model = Model(takes_s=0.3)
        owner = Caller(one, KEY, model)
        incident.done.wait(5)
        # when others ask too
        others = ask(one, KEY, model, 3) + ask(two, KEY, model, 3)
        # then there is one call, and nobody waited for a lease to end
        assert values([owner, *others]) == [{"call": 1}]
        assert model.calls == 1
        assert owner.result().fence > 0
        assert owner.took_s < 1.3


@pytest.mark.one_server
def test_h03_the_owner_ends_between_a_followers_join_and_its_first_read(
    worker: Worker, redis_server: RedisServer
) -> None:
    with Proxy(redis_server) as wire:
        one, two = worker(**STEADY), worker(url=wire.url, **STEADY)
        model = Model(held=True)
        owner = Caller(one, KEY, model)
        model.began.wait()
        # given a follower that has joined, and whose read is still on its way
        read = wire.hold(b"XREAD")
        follower = Caller(two, KEY, model)
        assert read.met.wait(5)
        # when the owner ends before it
        model.let_go()
        answered = owner.result()
        released_at = time.monotonic()
        read.let_go()
        # then the read finds the end
        assert follower.result().fence == answered.fence
        assert follower.answered_at - released_at < SOON_S
        assert model.calls == 1


def test_h03_no_end_is_missed_however_close_it_is_to_the_join(worker: Worker) -> None:
    one, two = worker(), worker()  # a follower that missed an end would wait for seconds
    for n in range(60):
        key = FlightKey("scoring", "close", n)
        model = Model(takes_s=n / 20_000)
        owner = Caller(one, key, model)
        model.began.wait()
        follower = Caller(two, key, model)
        assert follower.result().value == owner.result().value == {"call": 1}
        assert follower.answered_at - model.ended_at < SOON_S


def test_h03_the_reader_hears_of_new_flights_while_it_waits_for_old_ones(worker: Worker) -> None:
    one, two = worker(), worker()
    slow = Model(held=True)
    waiting = [Caller(one, KEY, slow)]
    slow.began.wait()
    waiting.append(Caller(two, KEY, slow))
    await_following(two)
    for n in range(10):
        key, model = FlightKey("scoring", "new", n), Model(takes_s=0.05)
        owner = Caller(one, key, model)
        model.began.wait()
        follower = Caller(two, key, model)
        assert follower.result().value == owner.result().value
        assert follower.answered_at - model.ended_at < SOON_S
    slow.let_go()
    assert values(waiting) == [{"call": 1}]
