"""A worker that stops: who waits is told, others take over, nothing is left behind."""

from __future__ import annotations

import hashlib
import time

import gevent
import pytest

from flightsvc.errors import Draining
from flightsvc.flight import FlightKey, SingleFlight
from flightsvc.settings import Settings
from flightsvc.store.scripts import source
from tests.faults.proxy import Proxy
from tests.flight.conftest import Worker
from tests.flight.flying import Caller, Model, ask, await_following, count, roles, values
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "s1", "an answer")


def sha_of(script: str) -> bytes:
    """What a script is called by."""
    return hashlib.sha1(source(script)).hexdigest().encode()


@pytest.mark.parametrize("how", ["drain", "close"])
def test_followers_elsewhere_take_over_from_a_worker_that_stops(worker: Worker, how: str) -> None:
    one, two = worker(), worker()  # a lease of seconds: only the release can be so quick
    model, second = Model(held=True), Model()
    mine = ask(one, KEY, model, 3)
    model.began.wait()
    theirs = ask(two, KEY, second, 3)
    await_following(two)
    released_at = time.monotonic()
    getattr(one, how)()
    # its own callers are told to come again
    for caller in mine:
        error = caller.error(1)
        assert isinstance(error, Draining)
        assert (error.status, error.retry_after_s) == (503, 1)
    # and the others go on, by a call of their own
    assert values(theirs) == [{"call": 1}]
    assert roles(theirs) == ["follower", "follower", "owner"]
    assert max(caller.answered_at for caller in theirs) - released_at < 0.5
    assert (model.calls, model.ended, second.calls) == (1, 0, 1)
    assert count(one, "flight.ends.scoring.released") == 1
    # it was not counted as a failure
    view = two.inspect(KEY.flight_id)
    assert view is not None
    assert view.ownerships == 1


def test_work_that_fits_in_the_grace_period_is_finished(worker: Worker) -> None:
    one, two = worker(), worker()
    model = Model(takes_s=0.3)
    callers = ask(one, KEY, model, 3)
    model.began.wait()
    callers += ask(two, KEY, model, 3)
    await_following(two)
    one.close(grace_s=5)
    assert one.metrics.snapshot()["flight.ends.scoring.stored"] == 1
    assert values(callers) == [{"call": 1}]
    assert model.calls == 1


def test_work_that_does_not_fit_is_let_go_at_the_end_of_the_grace_period(worker: Worker) -> None:
    one = worker()
    model = Model(held=True)
    caller = Caller(one, KEY, model)
    model.began.wait()
    began = time.monotonic()
    one.close(grace_s=0.4)
    assert 0.4 <= time.monotonic() - began < 1.4
    assert isinstance(caller.error(0.1), Draining)
    view = worker().inspect(KEY.flight_id)
    assert view is not None
    assert view.state == "PENDING"


def test_a_draining_worker_answers_what_needs_no_call(worker: Worker) -> None:
    one, two = worker(), worker()
    told, known, flying, new = (FlightKey("scoring", name) for name in "abcd")
    one.run(told, Model())
    two.run(known, Model())
    held, refused = Model(held=True), Model()
    owner = Caller(two, flying, held)
    held.began.wait()
    one.drain()
    # from its memory, from Redis, and from a call that another worker makes
    assert one.run(told, refused).role == "l1"
    assert one.run(known, refused).role == "replay"
    joiner = Caller(one, flying, refused)
    await_following(one)
    held.let_go()
    assert values([owner, joiner]) == [{"call": 1}]
    # but it makes no call itself, whoever asks
    for key, options in ((new, {}), (told, {"replay": False})):
        assert isinstance(Caller(one, key, refused, **options).error(1), Draining)
    assert refused.calls == 0


def test_a_draining_worker_does_not_take_over(worker: Worker) -> None:
    one, two = worker(), worker()
    model = Model(held=True)
    owner = Caller(two, KEY, model)
    model.began.wait()
    one.drain(grace_s=5)
    follower = Caller(one, KEY, model)
    await_following(one)
    two.drain()
    assert isinstance(owner.error(1), Draining)
    assert isinstance(follower.error(1), Draining)
    assert model.calls == 1


@pytest.mark.one_server
def test_an_ownership_that_comes_after_the_drain_is_given_back(
    worker: Worker, redis_server: RedisServer
) -> None:
    with Proxy(redis_server) as wire:
        one, two = worker(url=wire.url), worker()
        one.run(FlightKey("scoring", "warm"), Model())
        # given a question that is on its way to Redis when the worker begins to stop
        acquire = wire.hold(sha_of("acquire"))
        model, second = Model(), Model()
        caller = Caller(one, KEY, model)
        assert acquire.met.wait(5)
        one.drain()
        assert isinstance(caller.error(1), Draining)
        acquire.let_go()
        # then no call is made for nobody, and the next worker need not wait for a lease
        wait_until(lambda: count(one, "flight.in_flight") == 0, 5)
        got = one.metrics.snapshot()
        assert got["flight.actions.scoring.owner_new"] == 2
        assert sum(n for name, n in got.items() if name.startswith("flight.ends.")) == 2
        late = Caller(two, KEY, second)
        assert late.result().value == {"call": 1}
        assert late.took_s < 2
        assert model.calls == 0


def test_a_worker_without_redis_drains_too() -> None:
    one = SingleFlight(Settings(mode="local"))
    model = Model(held=True)
    caller = Caller(one, KEY, model)
    model.began.wait()
    one.drain()
    assert isinstance(caller.error(1), Draining)
    assert isinstance(Caller(one, KEY, model).error(1), Draining)
    assert (model.calls, model.ended) == (1, 0)
    one.close()


def test_drain_and_close_can_be_repeated(worker: Worker) -> None:
    one = worker()
    one.run(KEY, Model())
    one.drain()
    one.drain(grace_s=1)
    one.close()
    one.close()


@pytest.mark.one_server
def test_a_worker_that_closes_while_it_beats_says_nothing(
    worker: Worker, redis_server: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with Proxy(redis_server) as wire:
        one = worker(url=wire.url, heartbeat_ms=50)
        caller = Caller(one, KEY, Model(held=True))
        wait_until(lambda: count(one, "redis.time.beat") >= 1)
        beat = wire.hold(sha_of("beat"))
        assert beat.met.wait(5)
        one.close()
        assert isinstance(caller.error(1), Draining)
        beat.let_go()
        gevent.sleep(0.05)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.one_server
def test_a_worker_that_only_waits_closes_at_once_and_leaves_nothing(
    worker: Worker,
    redis_server: RedisServer,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    one, two = worker(), worker(url=f"{redis_server.url}?client_name={namespace}")
    model = Model(held=True)
    owner = Caller(one, KEY, model)
    model.began.wait()
    follower = Caller(two, KEY, model)
    await_following(two)

    def connections() -> int:
        return sum(c["name"] == namespace for c in redis_server.client().client_list())

    assert connections() > 0
    began = time.monotonic()
    two.close()
    # there is no call of its own to wait for
    assert time.monotonic() - began < 0.5
    assert isinstance(follower.error(0.1), Draining)
    wait_until(lambda: connections() == 0, 2)
    model.let_go()
    assert owner.result().value == {"call": 1}
    gevent.sleep(0.1)
    assert connections() == 0
    assert "Traceback" not in capsys.readouterr().err
