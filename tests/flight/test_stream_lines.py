"""Streams over a line to Redis that breaks, falls silent, or brings things twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gevent
import pytest

from flightsvc.errors import FallbackAnswer, ProviderUnreachable
from flightsvc.flight import SingleFlight
from tests.faults.incident import Harm
from tests.faults.proxy import Proxy
from tests.faults.resp import command, script
from tests.flight.conftest import Worker
from tests.flight.flying import STEADY, count
from tests.flight.streaming import Listener, Talker, followed, listen, text, two_workers
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.one_server
BROKEN = [Harm.RESET, Harm.CUT, Harm.RESET_REPLY, Harm.CUT_REPLY, Harm.SWALLOW, Harm.SWALLOW_REPLY]


@pytest.fixture
def wire(redis_server: RedisServer) -> Iterator[Proxy]:
    with Proxy(redis_server) as wire:
        yield wire


def check(listeners: list[Listener], talker: Talker) -> None:
    """All have heard the whole text, once and without a break, and of one call."""
    for listener in listeners:
        assert listener.result().value == {"chunks": len(talker.chunks)}
        assert (listener.chunks, listener.voided) == (talker.chunks, [])
    assert talker.calls == 1


@pytest.mark.parametrize("harm", BROKEN)
def test_h02_an_append_or_its_reply_is_lost(worker: Worker, wire: Proxy, harm: Harm) -> None:
    one, two = worker(url=wire.url, **STEADY), worker(**STEADY)
    talker = Talker(text(12), held=True)
    listeners = two_workers(one, two, talker, 3)
    incident = wire.plan(harm, script("append"), times=2)
    talker.let_go(3)
    assert incident.met.wait(5)
    # chunks come while the append is told again, and its own listeners do not wait for it
    talker.let_go(3)
    listeners[0].heard(9, 0.2)
    listeners[1].heard(9)
    talker.let_go()
    check(listeners, talker)


@pytest.mark.parametrize("harm", BROKEN)
def test_h02_the_last_append_or_its_reply_is_lost(
    worker: Worker, wire: Proxy, harm: Harm
) -> None:
    one, two = worker(url=wire.url, **STEADY), worker(**STEADY)
    talker = Talker(text(6), held=True)
    listeners = two_workers(one, two, talker, 3)
    incident = wire.plan(harm, script("append"))
    talker.let_go()
    assert incident.met.wait(5)
    check(listeners, talker)


@pytest.mark.parametrize("harm", BROKEN)
@pytest.mark.parametrize("what", ["finish", "fail"])
def test_h02_the_end_is_lost_and_told_again(
    worker: Worker, wire: Proxy, harm: Harm, what: str
) -> None:
    one, two = worker(url=wire.url, **STEADY), worker(**STEADY)
    error = ValueError("broken") if what == "fail" else None
    talker = Talker(text(6), held=True, error=error)
    listeners = two_workers(one, two, talker, 3)
    incident = wire.plan(harm, script(what))
    talker.let_go()
    assert incident.met.wait(5)
    if error is None:
        check(listeners, talker)
        return
    for listener in listeners:
        assert listener.error().code == "UNEXPECTED"
        assert (listener.chunks, listener.voided) == (text(6), [])
    assert talker.calls == 1


@pytest.mark.parametrize("harm", [None, *BROKEN])
def test_what_stands_in_for_an_answer_voids_the_chunks(
    worker: Worker, wire: Proxy, harm: Harm | None
) -> None:
    one, two = worker(url=wire.url, **STEADY), worker(**STEADY)
    error = FallbackAnswer("sorry", action="template", failure=ProviderUnreachable())
    talker = Talker(text(6), held=True, error=error)
    listeners = two_workers(one, two, talker, 3)
    if harm is not None:
        wire.plan(harm, script("fail"))
    talker.let_go()
    for listener in listeners:
        result = listener.result()
        assert (result.value, result.fallback) == ("sorry", "template")
        assert listener.chunks == []
        assert len(listener.voided) == 1
    assert talker.calls == 1
    wait_until(lambda: count(one, "flight.in_flight") == 0, 5)


@pytest.mark.parametrize("harm", BROKEN)
def test_h02_a_read_or_its_reply_is_lost(worker: Worker, wire: Proxy, harm: Harm) -> None:
    one, two = worker(**STEADY), worker(url=wire.url, **STEADY)
    talker = Talker(text(12), held=True)
    listeners = two_workers(one, two, talker, 3)
    incident = wire.plan(harm, command("xread"))
    talker.let_go(3)
    assert incident.met.wait(5)
    talker.let_go()
    check(listeners, talker)


@pytest.mark.parametrize("whose", ["owner's", "follower's"])
def test_a_line_that_is_cut_and_mended_costs_no_chunk(
    worker: Worker, wire: Proxy, whose: str
) -> None:
    through, beside = worker(url=wire.url, **STEADY), worker(**STEADY)
    one, two = (through, beside) if whose == "owner's" else (beside, through)
    talker = Talker(text(40), held=True)
    listeners = two_workers(one, two, talker, 5)
    wire.cut()
    talker.let_go(5)
    # the owner's own listeners notice nothing
    listeners[0].heard(10, 0.2)
    gevent.sleep(0.8)
    assert len(listeners[1].chunks) == 5
    wire.mend()
    listeners[1].heard(10)
    talker.let_go()
    check(listeners, talker)


def test_an_end_that_was_missed_costs_no_chunk(worker: Worker, wire: Proxy) -> None:
    # given a follower whose line is cut while the text goes on and ends
    one, two = worker(**STEADY), worker(url=wire.url, **STEADY)
    talker = Talker(text(40), held=True)
    listeners = two_workers(one, two, talker, 5)
    wire.cut()
    talker.let_go()
    listeners[0].result()
    wire.mend()
    # then it gets the rest together with the answer
    check(listeners, talker)


def test_a_server_that_is_frozen_for_a_while_costs_no_chunk(own_redis: RedisServer) -> None:
    one = SingleFlight.from_url(own_redis.url, **STEADY)
    two = SingleFlight.from_url(own_redis.url, **STEADY)
    try:
        talker = Talker(text(40), held=True)
        listeners = two_workers(one, two, talker, 5)
        own_redis.freeze()
        talker.let_go(20)
        listeners[0].heard(25, 0.3)
        gevent.sleep(1.5)
        own_redis.thaw()
        listeners[1].heard(25)
        talker.let_go()
        check(listeners, talker)
    finally:
        one.close()
        two.close()


def test_a_full_server_costs_the_others_the_rest_and_the_owners_nothing(
    own_redis: RedisServer,
) -> None:
    quick: dict[str, Any] = {"heartbeat_ms": 100, "takeover_detect_ms": 1_000}
    one = SingleFlight.from_url(own_redis.url, **quick)
    two = SingleFlight.from_url(own_redis.url, **quick)
    try:
        talker = Talker(text(10), held=True)
        mine, theirs = two_workers(one, two, talker, 5)
        own_redis.set("maxmemory", 1)
        talker.let_go()
        assert mine.result().value == {"chunks": 10}
        assert (mine.chunks, mine.voided) == (text(10), [])
        assert theirs.error().code == "RESULT_NOT_STORED"
        assert (theirs.chunks, theirs.voided) == (text(5), [])
        assert talker.calls == 1
    finally:
        one.close()
        two.close()


def test_a_follower_whose_line_stays_cut_calls_for_itself(worker: Worker, wire: Proxy) -> None:
    quick: dict[str, Any] = {"heartbeat_ms": 100, "takeover_detect_ms": 800}
    one, two = worker(**quick), worker(url=wire.url, **quick)
    mine, own = Talker(text(8), held=True), Talker(text(4, "own"))
    first = listen(one, mine)[0]
    mine.began.wait()
    theirs = listen(two, own)[0]
    followed(two)
    mine.let_go(3)
    theirs.heard(3)
    wire.cut()
    # what it has is void, and it is told so before it gets another call's text
    assert theirs.result().role == "local"
    assert (theirs.chunks, theirs.voided) == (text(4, "own"), [3])
    mine.let_go()
    assert first.result().value == {"chunks": 8}
    wait_until(lambda: count(two, "flight.fallbacks.chat") == 1, 1)
