"""One call's chunks for everybody: in this worker and others, early, late, slow or plain."""

from __future__ import annotations

import random
from hashlib import sha256
from typing import Any

import gevent
import pytest

from flightsvc.flight import End, FlightContext
from flightsvc.store import Names
from tests.faults.incident import Harm
from tests.faults.proxy import Proxy
from tests.faults.resp import script
from tests.flight.conftest import Worker, counts
from tests.flight.flying import STEADY, Caller, count
from tests.flight.processes.talker import TalkingChild
from tests.flight.streaming import KEY, Talker, followed, listen, text
from tests.processes import wait_until
from tests.support.redis_server import RedisServer


def test_chunks_come_while_the_call_runs(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(3), held=True)
    listeners = listen(one, talker)
    talker.began.wait()
    listeners += listen(two, talker)
    for number in range(1, 4):
        talker.let_go(1)
        for listener in listeners:
            listener.heard(number)
            assert listener.listens
            assert listener.chunks == text(number)
    talker.let_go()
    assert [listener.result().role for listener in listeners] == ["owner", "follower"]
    assert {listener.result().fence for listener in listeners} == set(talker.fences)


def test_h03_chunks_with_random_gaps_come_in_order_and_once(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    chunks, rng = text(200), random.Random(3)

    def call(ctx: FlightContext) -> str:
        for chunk in chunks:
            ctx.emit(chunk)
            gevent.sleep(rng.uniform(0, 0.1) if rng.random() < 0.2 else 0)
        return "all"

    listeners = listen(one, call, 2)
    while not listeners[0].chunks:
        gevent.sleep(0.005)
    for _ in range(6):
        gevent.sleep(0.1)
        listeners += listen(two, call, 2) + listen(one, call)
    assert {listener.result().value for listener in listeners} == {"all"}
    assert all(listener.chunks == chunks for listener in listeners)
    assert count(one, "flight.calls.chat") == 1


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same worker", "another worker"])
def test_h06_who_comes_after_3_of_10_chunks_gets_all(worker: Worker, elsewhere: bool) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(10), held=True)
    first = listen(one, talker)[0]
    talker.let_go(3)
    first.heard(3)
    late = listen(two if elsewhere else one, talker)[0]
    # what is there comes at once, while the call is silent
    late.heard(3)
    talker.let_go()
    assert late.result().role == "follower"
    assert first.result().value == late.result().value == {"chunks": 10}
    assert first.chunks == late.chunks == text(10)
    assert talker.calls == 1


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same worker", "another worker"])
def test_h06_who_comes_after_the_end_gets_the_answer_without_chunks(
    worker: Worker, elsewhere: bool
) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(10))
    assert one.run(KEY, talker).value == {"chunks": 10}
    late = listen(two if elsewhere else one, talker)[0]
    assert late.result().value == {"chunks": 10}
    assert late.result().role == "replay"
    assert late.chunks == []
    assert talker.calls == 1


def test_a_replay_from_the_workers_memory_has_no_chunks(worker: Worker) -> None:
    one = worker(**STEADY, stages={"chat": {"l1_ttl_s": 30}})
    talker = Talker(text(2))
    one.run(KEY, talker)
    with one.stream(KEY, talker) as stream:
        end = stream.next(0)
        assert isinstance(end, End)
        assert (end.result.role, stream.role, stream.fence) == ("l1", "l1", talker.fences[0])
        assert stream.next(0) == end


def test_plain_and_streaming_callers_share_one_call(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(5), held=True)
    # given a plain caller that begins the flight
    plain = [Caller(one, KEY, talker)]
    talker.began.wait()
    listeners = listen(one, talker) + listen(two, talker)
    plain += [Caller(one, KEY, talker), Caller(two, KEY, talker)]
    followed(two)
    talker.let_go()
    assert all(caller.result().value == {"chunks": 5} for caller in plain)
    for listener in listeners:
        assert listener.result().value == {"chunks": 5}
        assert listener.chunks == text(5)
    assert talker.calls == 1


def test_a_plain_follower_comes_first_and_one_that_streams_after_it(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(4), held=True)
    Caller(one, KEY, talker)
    talker.began.wait()
    Caller(two, KEY, talker)
    followed(two)
    talker.let_go(3)
    wait_until(lambda: len(talker.contexts) == 1, 5)
    late = listen(two, talker)[0]
    late.heard(3)
    talker.let_go()
    assert late.result().value == {"chunks": 4}
    assert late.chunks == text(4)
    assert count(two, "flight.actions.chat.follower_wait") == 1


def test_the_chunks_of_one_append_stay_apart(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    chunks = [b"a", b"", b"\r\n\r\n", "履".encode()[:1], "履".encode()[1:], b"\x00" * 9_000, b"z"]
    talker = Talker(chunks, held=True)
    first = listen(one, talker)[0]
    talker.began.wait()
    second = listen(two, talker)[0]
    followed(two)
    talker.let_go()
    first.result(), second.result()
    assert first.chunks == second.chunks == chunks


def test_a_call_that_emits_nothing_is_answered_without_chunks(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker([], held=True)
    listeners = listen(one, talker)
    talker.began.wait()
    listeners += listen(two, talker)
    followed(two)
    talker.let_go()
    assert [listener.result().value for listener in listeners] == [{"chunks": 0}] * 2
    assert [listener.chunks for listener in listeners] == [[], []]


def test_a_slow_listener_holds_nobody_up(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(100), gap_s=0.002)
    fast = listen(one, talker)
    talker.began.wait()
    slow = listen(one, talker, pause_s=0.02) + listen(two, talker, pause_s=0.02)
    fast += listen(two, talker)
    for listener in fast:
        listener.result()
    # the slow ones are still in the middle, and get everything
    assert all(listener.listens for listener in slow)
    for listener in slow:
        assert listener.result().value == {"chunks": 100}
        assert listener.chunks == text(100)


def test_all_chunks_are_told_before_the_end(
    worker: Worker, redis_server: RedisServer, namespace: str
) -> None:
    # given a call that emits its last chunks in the moment of its end
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(2_000), held=True)
    listener = listen(one, talker)[0]
    talker.began.wait()
    follower = listen(two, talker)[0]
    followed(two)
    talker.let_go()
    assert listener.result().fence == follower.result().fence
    assert follower.chunks == listener.chunks == text(2_000)
    assert follower.voided == []
    client: Any = redis_server.client()
    events = client.xrange(Names(namespace, 16).flight(KEY.flight_id)["events"])
    assert [fields[b"kind"] for _, fields in events[-2:]] == [b"chunk", b"succeeded"]


@pytest.mark.one_server
def test_a_reply_to_an_append_that_is_lost_doubles_nothing(
    worker: Worker, redis_server: RedisServer
) -> None:
    with Proxy(redis_server) as wire:
        one, two = worker(url=wire.url, **STEADY), worker(**STEADY)
        talker = Talker(text(30), gap_s=0.01, held=True)
        first = listen(one, talker)[0]
        talker.began.wait()
        second = listen(two, talker)[0]
        followed(two)
        for harm in (Harm.CUT_REPLY, Harm.SWALLOW_REPLY, Harm.RESET):
            incident = wire.plan(harm, script("append"))
            talker.let_go(8)
            assert incident.done.wait(5)
        talker.let_go()
        assert first.result().fence == second.result().fence
        assert first.chunks == second.chunks == text(30)
        assert second.voided == []
        assert talker.calls == 1


def test_the_text_of_500_listeners_in_two_processes_is_the_same(
    redis_server: RedisServer, namespace: str
) -> None:
    asked: dict[str, Any] = {"chunks": 200, "gap_s": 0.02, "callers": 250, **STEADY}
    asked["redis_timeout_ms"] = 1_000
    # both start before either is waited for
    children = [TalkingChild(redis_server.url, namespace, **asked) for _ in range(2)]
    with children[0] as one, children[1] as two:
        ends = [one.end(), two.end()]
    whole = sha256(b"".join(text(200))).hexdigest()
    assert [end["texts"] for end in ends] == [[whole], [whole]]
    ends.sort(key=lambda end: end["counts"].get("flight.calls.chat", 0))
    follower, owner = (end["counts"] for end in ends)
    assert (follower.get("flight.calls.chat", 0), owner["flight.calls.chat"]) == (0, 1)
    # Redis hears of it some tens of times a second, and of the followers once
    assert owner["redis.time.append"] <= ends[1]["took_s"] / 0.02 + 3
    assert follower["redis.time.acquire"] == 2


@pytest.mark.parametrize(("followers", "longest_s"), [(0, 0.1), (1, 0.02)])
def test_redis_hears_of_chunks_less_often_while_nobody_follows(
    worker: Worker, followers: int, longest_s: float
) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(200), gap_s=0.005, held=True)
    first = listen(one, talker)[0]
    talker.began.wait()
    others = listen(two, talker, followers)
    if followers:
        followed(two)
    talker.let_go()
    for listener in [first, *others]:
        listener.result()
    took_s = talker.ended_at - first.times[0]
    assert counts(one)["redis.time.append"] <= took_s / longest_s + 3
