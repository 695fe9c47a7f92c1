"""What one caller that streams may ask for, and what it is told."""

from __future__ import annotations

import time

import pytest

from flightsvc.errors import NestedFlight, ResultRejected, TooManyWaiters, WaitTimeout
from flightsvc.flight import Chunk, End, FlightContext, FlightKey, SingleFlight
from tests.flight.conftest import Worker, counts
from tests.flight.flying import STEADY, count
from tests.flight.streaming import KEY, Listener, Talker, followed, listen, text


def test_a_waiting_listener_is_told_that_nothing_came(worker: Worker) -> None:
    one = worker(**STEADY)
    talker = Talker(text(1), held=True)
    with one.stream(KEY, talker) as stream:
        assert stream.next(0) is None
        began = time.monotonic()
        assert stream.next(0.1) is None
        assert 0.1 <= time.monotonic() - began < 1
        assert stream.role == "owner"
        assert stream.fence == talker.fences[0]
        talker.let_go()
        assert stream.next() == Chunk(text(1)[0])
        assert isinstance(stream.next(), End)


def test_a_listener_has_a_deadline_and_the_call_goes_on(worker: Worker) -> None:
    one = worker(**STEADY)
    talker = Talker(text(2), held=True)
    impatient = listen(one, talker, deadline_s=0.2)[0]
    patient = listen(one, talker)[0]
    talker.let_go(1)
    assert isinstance(impatient.error(), WaitTimeout)
    assert impatient.chunks == text(1)
    talker.let_go()
    assert patient.result().value == {"chunks": 2}


def test_listeners_count_among_the_waiters(worker: Worker) -> None:
    one = worker(**STEADY, max_waiters=2, worker_connections=10)
    talker = Talker(text(1), held=True)
    streams = [one.stream(KEY, talker) for _ in range(2)]
    assert count(one, "flight.waiters") == 2
    with pytest.raises(TooManyWaiters):
        one.stream(KEY, talker)
    streams[0].close()
    streams[0].close()
    assert count(one, "flight.waiters") == 1
    with one.stream(KEY, talker):
        talker.let_go()
    streams[1].close()
    assert count(one, "flight.waiters") == 0


def test_counts_add_up(worker: Worker) -> None:
    one = worker(**STEADY)
    talker = Talker(text(2), held=True)
    staying, leaving, late = listen(one, talker, 2), listen(one, talker), []
    late = listen(one, talker, deadline_s=0.1)
    leaving[0].heard(0)
    talker.began.wait()
    leaving[0].leave()
    late[0].error()
    talker.let_go()
    for listener in staying:
        listener.result()
    seen = counts(one)
    assert seen["flight.callers.chat"] == 4
    assert seen["flight.answers.chat.owner"] + seen["flight.answers.chat.follower"] == 2
    assert seen["flight.left.chat"] == seen["flight.errors.chat.WAIT_TIMEOUT"] == 1


def test_who_wants_no_replay_gets_a_call_of_its_own(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(3))
    one.run(KEY, talker)
    assert listen(two, talker)[0].result().role == "replay"
    fresh = listen(two, talker, replay=False)[0]
    assert fresh.result().role == "owner"
    assert fresh.chunks == text(3)
    assert talker.calls == 2


def test_who_wants_no_replay_joins_a_flight_in_the_air(worker: Worker) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    talker = Talker(text(3), held=True)
    first = listen(one, talker)[0]
    talker.began.wait()
    others = listen(one, talker, replay=False) + listen(two, talker, replay=False)
    followed(two)
    talker.let_go()
    assert all(other.result().fence == first.result().fence for other in others)
    assert talker.calls == 1


def test_chunks_are_bytes(worker: Worker) -> None:
    one = worker(**STEADY)

    def call(ctx: FlightContext) -> None:
        ctx.emit("text")  # type: ignore[arg-type]

    assert listen(one, call)[0].error().code == ResultRejected.default_code


def test_a_flight_does_not_read_itself(worker: Worker) -> None:
    one = worker(**STEADY)

    def call(ctx: FlightContext) -> str:
        with pytest.raises(NestedFlight):
            one.stream(KEY, call)
        inner = FlightKey("chat", "inner")
        with one.stream(inner, lambda ctx: one.run(KEY, call).value) as stream, pytest.raises(
            Exception, match="FLIGHT_NESTED"
        ):
            stream.next()
        return "fine"

    assert listen(one, call)[0].result().value == "fine"


def test_without_redis_chunks_are_shared_in_the_worker() -> None:
    with_none = SingleFlight.from_url("", mode="local")
    try:
        talker = Talker(text(5), gap_s=0.01)
        listeners = listen(with_none, talker, 3)
        assert [listener.result().role for listener in listeners] == ["local"] * 3
        assert all(listener.chunks == text(5) for listener in listeners)
        assert talker.calls == 1
    finally:
        with_none.close()


@pytest.mark.parametrize("listeners", [1, 100])
def test_memory_is_flat_in_the_number_of_listeners(worker: Worker, listeners: int) -> None:
    one = worker(**STEADY)
    talker = Talker([bytes(1_000) for _ in range(50)], held=True)
    listening: list[Listener] = listen(one, talker, listeners)
    talker.let_go(50)
    for listener in listening:
        listener.heard(50)
    # every listener holds the very same bytes
    assert len({id(chunk) for listener in listening for chunk in listener.chunks}) <= 50
    talker.let_go()
    for listener in listening:
        listener.result()
