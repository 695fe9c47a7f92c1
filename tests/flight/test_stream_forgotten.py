"""Texts that Redis forgets, in part or with everything else, while they are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import pytest

from flightsvc.flight import SingleFlight
from flightsvc.store import Names
from tests.flight.conftest import Worker
from tests.flight.flying import STEADY
from tests.flight.streaming import KEY, Talker, listen, text, two_workers
from tests.support.redis_server import RedisServer


@pytest.fixture
def names(namespace: str) -> dict[str, str]:
    """The Redis names of the flight."""
    return Names(namespace, 16).flight(KEY.flight_id)


Harm = Callable[[Any, dict[str, str]], object]


def delete_state(client: Any, names: dict[str, str]) -> object:
    return client.delete(names["meta"], names["interest"], names["live"])


def delete_events(client: Any, names: dict[str, str]) -> object:
    return client.delete(names["events"])


def trim_events(client: Any, names: dict[str, str]) -> object:
    return client.xtrim(names["events"], maxlen=0, approximate=False)


def remake_events_with_lower_ids(client: Any, names: dict[str, str]) -> object:
    pipe = client.pipeline(transaction=True)
    pipe.delete(names["events"])
    pipe.xadd(names["events"], {"kind": "owned", "fence": "1"}, id="1-1")
    return pipe.execute()


@pytest.mark.parametrize("harm", [delete_state, delete_events, trim_events])
@pytest.mark.parametrize("silent", [False, True], ids=["while it talks", "before its end"])
def test_the_text_is_told_again_from_the_start(
    worker: Worker, redis_server: RedisServer, names: dict[str, str], harm: Harm, silent: bool
) -> None:
    one, two, three = worker(**STEADY), worker(**STEADY), worker(**STEADY)
    talker = Talker(text(20), held=True)
    listeners = two_workers(one, two, talker, 20 if silent else 10)
    harm(redis_server.client(), names)
    gevent.sleep(0.3)
    talker.let_go(0 if silent else 5)
    gevent.sleep(0.3)
    late = listen(three, talker)[0]
    gevent.sleep(0.2)
    talker.let_go()
    # one call, and everybody has the whole text, nobody with a gap or a doubled chunk
    fences = {listener.result().fence for listener in [*listeners, late]}
    assert len(fences) == 1
    for listener in [*listeners, late]:
        assert (listener.chunks, listener.voided) == (text(20), [])
    assert talker.calls == 1


def test_events_that_were_made_anew_with_lower_ids(
    worker: Worker, redis_server: RedisServer, names: dict[str, str]
) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(20), held=True)
    listeners = two_workers(one, two, talker, 10)
    remake_events_with_lower_ids(redis_server.client(), names)
    gevent.sleep(1)
    talker.let_go()
    for listener in listeners:
        assert listener.result().value == {"chunks": 20}
        assert (listener.chunks, listener.voided) == (text(20), [])
    assert talker.calls == 1


def test_redis_loses_everything_and_the_owner_appends_again(own_redis: RedisServer) -> None:
    one = SingleFlight.from_url(own_redis.url, **STEADY)
    two = SingleFlight.from_url(own_redis.url, **STEADY)
    try:
        talker = Talker(text(100), gap_s=0.02, held=True)
        mine, theirs = two_workers(one, two, talker, 5)
        # an owner that talks notices at its next chunk
        talker.let_go()
        own_redis.client().flushall()
        assert mine.result().value == theirs.result().value == {"chunks": 100}
        assert (mine.chunks, theirs.chunks) == (text(100), text(100))
        assert mine.result().fence == theirs.result().fence > talker.fences[0]
        assert talker.calls == 1
    finally:
        one.close()
        two.close()


@pytest.mark.parametrize("mode", ["hybrid", "distributed"])
def test_redis_is_started_anew_without_its_data(own_redis: RedisServer, mode: str) -> None:
    settings = {**STEADY, "mode": mode}
    one = SingleFlight.from_url(own_redis.url, **settings)
    two = SingleFlight.from_url(own_redis.url, **settings)
    try:
        talker = Talker(text(100), gap_s=0.02, held=True)
        mine, theirs = two_workers(one, two, talker, 5)
        talker.let_go()
        own_redis.kill()
        gevent.sleep(0.5)
        own_redis.start()
        # at most one more call, and nobody ends with a text that is not one call's
        assert mine.result(20).value == theirs.result(20).value == {"chunks": 100}
        for listener in (mine, theirs):
            assert listener.chunks in (text(100), [])
        assert talker.calls <= 2
    finally:
        one.close()
        two.close()
