"""Owners that fail, die, freeze or lose their flight in the middle of a text."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import gevent
import pytest

from flightsvc.errors import Draining, ProviderRateLimited, ProviderUnreachable
from flightsvc.store import Names
from tests.flight.conftest import Worker
from tests.flight.flying import QUICK, STEADY, Caller
from tests.flight.processes.talker import TalkingChild
from tests.flight.streaming import KEY, Talker, followed, listen, text, two_workers
from tests.processes import wait_until
from tests.support.redis_server import RedisServer


@pytest.fixture
def names(namespace: str) -> dict[str, str]:
    """The Redis names of the flight."""
    return Names(namespace, 16).flight(KEY.flight_id)


def await_beat(client: Any, names: dict[str, str]) -> None:
    """Wait until the flight's owner has just beaten: the next beat is far."""
    before = client.hget(names["meta"], "heartbeat")
    wait_until(lambda: client.hget(names["meta"], "heartbeat") != before, 5)


# -- failures ---------------------------------------------------------------------------------


def test_h26_a_failure_after_2_chunks_reaches_all_after_the_chunks(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(2), held=True, error=ProviderUnreachable())
    listeners = two_workers(one, two, talker)
    plain = [Caller(one, KEY, talker), Caller(two, KEY, talker)]
    gevent.sleep(0.1)
    talker.let_go()
    for listener in listeners:
        assert listener.error().code == "PROVIDER_UNREACHABLE"
        assert (listener.chunks, listener.voided) == (text(2), [])
    assert {caller.error().code for caller in plain} == {"PROVIDER_UNREACHABLE"}  # type: ignore[attr-defined]
    assert talker.calls == 1


def test_h27_a_failure_before_the_first_chunk_comes_whole(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker([], held=True, error=ProviderRateLimited(retry_after_s=7))
    listeners = two_workers(one, two, talker)
    talker.let_go()
    for listener in listeners:
        error = listener.error()
        assert (error.code, error.retry_after_s) == ("PROVIDER_RATE_LIMITED", 7)
        assert listener.chunks == []
    # who comes later is told so at once
    assert listen(two, talker)[0].error().code == "PROVIDER_RATE_LIMITED"
    assert talker.calls == 1


def test_a_failure_that_comes_back_is_raised_again(worker: Worker) -> None:
    one = worker(**STEADY)
    with one.stream(KEY, Talker([], error=ProviderUnreachable())) as stream:
        for _ in range(2):
            with pytest.raises(Exception, match="PROVIDER_UNREACHABLE"):
                stream.next()


# -- owners that die --------------------------------------------------------------------------


def test_an_owner_dies_and_who_had_nothing_notices_nothing(
    worker: Worker, redis_server: RedisServer, namespace: str
) -> None:
    two = worker(**QUICK)
    talker = Talker(text(5, "new"))
    with TalkingChild(redis_server.url, namespace, **QUICK) as child:
        # given a follower that had part of the text, and one that has read nothing of it
        partial = listen(two, talker)[0]
        partial.heard(2)
        os.kill(child.pid, signal.SIGKILL)
        with two.stream(KEY, talker) as unread:
            assert partial.result().value == {"chunks": 5}
            # then the one begins again, and the other goes on unseen
            assert len(partial.voided) == 1
            assert partial.voided[0] >= 2
            assert partial.chunks == text(5, "new")
            given = [unread.next(1) for _ in range(6)]
            assert [chunk.data for chunk in given[:5]] == text(5, "new")  # type: ignore[union-attr]
            assert unread.result is not None
            assert unread.fence == talker.fences[0]
    assert talker.calls == 1


def test_an_owner_dies_and_the_new_text_begins_with_what_was_given(
    worker: Worker, redis_server: RedisServer, namespace: str
) -> None:
    two = worker(**QUICK)
    talker = Talker(text(40))
    with TalkingChild(redis_server.url, namespace, **QUICK) as child:
        listener = listen(two, talker)[0]
        listener.heard(3)
        os.kill(child.pid, signal.SIGKILL)
        assert listener.result().value == {"chunks": 40}
    assert (listener.chunks, listener.voided) == (text(40), [])


def test_an_owner_freezes_and_its_own_listeners_follow_the_new_one(
    worker: Worker, redis_server: RedisServer, names: dict[str, str]
) -> None:
    # given an owner that cannot beat nor append for longer than its lease: it is frozen to others
    one, two = worker(heartbeat_ms=1_000), worker(**QUICK)
    old, new = Talker(text(4, "old"), held=True), Talker(text(4, "new"), held=True)
    mine = listen(one, old)[0]
    old.let_go(2)
    mine.heard(2)
    unread = one.stream(KEY, old)
    await_beat(redis_server.client(), names)
    redis_server.client().hset(names["meta"], "heartbeat", 1)
    theirs = listen(two, new)[0]
    assert new.began.wait(5)
    new.let_go(1)
    # then it hears that it lost its flight, and stops; its listeners hear the new owner's text
    wait_until(lambda: old.stopped == 1, 5)
    wait_until(lambda: mine.voided == [2], 5)
    new.let_go()
    assert mine.result().fence == theirs.result().fence == new.fences[0]
    assert mine.chunks == theirs.chunks == text(4, "new")
    assert [unread.next(1) for _ in range(4)] == [(chunk,) for chunk in text(4, "new")]
    unread.close()


def test_h06_no_follower_of_the_second_run_sees_the_first(
    worker: Worker, redis_server: RedisServer, names: dict[str, str]
) -> None:
    # an owner that does not see for a while that its flight was deleted
    one, two, three = worker(heartbeat_ms=1_000), worker(**STEADY), worker(**STEADY)
    first = Talker([b"A", b"A", b"A"], held=True)
    mine = listen(one, first)[0]
    first.let_go(3)
    mine.heard(3)
    # given a first run that lost its flight, and a second that got it
    second = Talker([b"B", b"B", b"B"], held=True)
    await_beat(redis_server.client(), names)
    redis_server.client().delete(names["meta"], names["interest"], names["live"])
    theirs = listen(two, second)
    assert second.began.wait(5)
    theirs += listen(two, second) + listen(three, second)
    second.let_go(2)
    for listener in theirs:
        listener.heard(2)
    wait_until(lambda: first.stopped, 5)
    second.let_go()
    for listener in [*theirs, mine]:
        assert listener.result().fence == second.fences[0]
        assert b"".join(listener.chunks) == b"BBB"
    assert [listener.voided for listener in theirs] == [[]] * 3
    assert mine.voided == [3]


# -- drain --------------------------------------------------------------------------------------


def test_h13_a_drain_gives_streams_their_error_and_followers_the_flight(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    old, new = Talker(text(4, "old"), held=True), Talker(text(4, "new"))
    mine = listen(one, old)[0]
    old.began.wait()
    theirs = listen(two, new)[0]
    followed(two)
    old.let_go(2)
    mine.heard(2)
    theirs.heard(2)
    began = time.monotonic()
    one.drain(0.2)
    assert isinstance(mine.error(), Draining)
    assert time.monotonic() - began < 1
    assert (mine.chunks, mine.voided) == (text(4, "old")[:2], [])
    assert theirs.result().role == "owner"
    assert (theirs.chunks, theirs.voided) == (text(4, "new"), [2])
    assert theirs.ended_at - began < 0.2 + 1


def test_h13_what_fits_into_the_grace_period_is_told_to_its_end(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(10), gap_s=0.02, held=True)
    listeners = two_workers(one, two, talker, 2)
    one.drain(5)
    talker.let_go()
    assert all(listener.result().value == {"chunks": 10} for listener in listeners)
    assert all(listener.chunks == text(10) for listener in listeners)


def test_h13_a_drain_ends_the_streams_of_followers_too(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(4), held=True)
    mine, theirs = two_workers(one, two, talker, 2)
    two.drain()
    assert isinstance(theirs.error(1), Draining)
    talker.let_go()
    assert mine.result().value == {"chunks": 4}
