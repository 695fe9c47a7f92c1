"""``FlightCoordinator``: every reply of a script becomes what it means."""

from __future__ import annotations

import pytest

from flightsvc.errors import FailureType
from flightsvc.flight.coordinator import (
    EVENTS_TTL_MS,
    MAX_FAILURE_MS,
    Ask,
    Conflict,
    Declined,
    FlightCoordinator,
    Following,
    Ownership,
    Refused,
    Replayed,
)
from flightsvc.flight.key import FlightKey
from flightsvc.flight.serializer import Envelope, ResultSerializer
from flightsvc.flight.state import Ack, Action, Failure, FlightState
from tests.protocol.desk import DETECT_MS, Desk

KEY = FlightKey("scoring", "s1", "3", "an answer", tenant="acme", digest="d1")
LIMITED = Failure(FailureType.PROVIDER, "PROVIDER_RATE_LIMITED", True, 503, 7_000)


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """A desk for the key of these tests."""
    return Desk(desk.server, desk.namespace, KEY.flight_id)


@pytest.fixture
def one(desk: Desk) -> FlightCoordinator:
    return desk.coordinator("w1")


@pytest.fixture
def two(desk: Desk) -> FlightCoordinator:
    return desk.coordinator("w2")


def _own(coordinator: FlightCoordinator, token: str = "a") -> Ownership:
    outcome = coordinator.acquire_or_join(Ask(KEY, token))
    assert isinstance(outcome, Ownership)
    return outcome


def _envelope(value: object = "x") -> Envelope:
    serializer = ResultSerializer(10_000)
    return serializer.pack(serializer.freeze(value))


def test_an_owner(desk: Desk, one: FlightCoordinator) -> None:
    own = _own(one)

    assert own == Ownership(KEY, "a", int(desk.meta()["fence"]), 1, Action.OWNER_NEW)
    assert desk.meta()["worker"] == "w1"
    assert (desk.meta()["tenant"], desk.meta()["stage"]) == ("acme", "scoring")
    deadline = int(desk.meta()["deadline"]) - int(desk.meta()["created"])
    assert deadline == 30_000 + DETECT_MS  # the stage's budget, and time to store the answer


def test_a_takeover(desk: Desk, one: FlightCoordinator, two: FlightCoordinator) -> None:
    first = _own(one)
    desk.silence()

    own = _own(two, "b")

    assert (own.action, own.attempt) == (Action.OWNER_TAKEOVER, 2)
    assert own.fence > first.fence


def test_a_follower(desk: Desk, one: FlightCoordinator, two: FlightCoordinator) -> None:
    own = _own(one)

    outcome = two.acquire_or_join(Ask(KEY, "b"))

    assert isinstance(outcome, Following)
    begin = desk.events()[0][0]
    assert (outcome.fence, outcome.events_from, outcome.last_event) == (own.fence, begin, begin)
    assert 0 < outcome.patience_ms <= DETECT_MS + 1
    assert one.beat(desk.names.shard_of(KEY.flight_id), [own]) == [(Ack.OK, 1)]


def test_a_replay_is_the_stored_bytes(
    desk: Desk, one: FlightCoordinator, two: FlightCoordinator
) -> None:
    own, envelope = _own(one), _envelope({"score": 80, "text": "好"})
    assert one.finish(own, envelope) is Ack.OK
    assert one.finish(own, envelope) is Ack.OK
    assert one.finish(own, _envelope("another")) is Ack.CONFLICT

    assert two.acquire_or_join(Ask(KEY, "b")) == Replayed(own.fence, envelope.blob)
    assert 0 < desk.ttl("events") <= EVENTS_TTL_MS
    assert 590_000 < desk.ttl("result") <= 600_000


def test_a_failure(desk: Desk, one: FlightCoordinator, two: FlightCoordinator) -> None:
    own = _own(one)
    assert one.fail(own, LIMITED) is Ack.OK

    outcome = two.acquire_or_join(Ask(KEY, "b"))

    assert isinstance(outcome, Refused)
    assert outcome.fence == own.fence
    told = outcome.failure
    assert 0 < told.retry_after_ms <= 7_000
    assert told == Failure(
        LIMITED.error_type, LIMITED.code, LIMITED.retryable, LIMITED.status, told.retry_after_ms
    )
    assert 50_000 < desk.ttl("meta") <= 60_000


def test_a_failure_is_kept_for_a_limited_time(desk: Desk, one: FlightCoordinator) -> None:
    # given a model that says: not before tomorrow
    late = Failure(FailureType.PROVIDER, "PROVIDER_RATE_LIMITED", True, 503, 86_400_000)

    one.fail(_own(one), late)

    assert MAX_FAILURE_MS - 10_000 < desk.ttl("meta") <= MAX_FAILURE_MS


def test_a_flight_that_lost_its_owners_is_kept_for_a_limited_time(desk: Desk) -> None:
    # given a stage whose failures are remembered for a day, and three takeovers
    stages = {"default": {"failure_ttl_s": 86_400}}
    coordinator = desk.coordinator("w1", stages=stages)
    for number in range(4):
        _own(coordinator, f"t{number}")
        desk.silence()

    # when the flight fails for it, then it is not kept longer than any other failure
    outcome = coordinator.acquire_or_join(Ask(KEY, "t4"))
    assert isinstance(outcome, Refused)
    assert outcome.failure.code == "FLIGHT_OWNERS_LOST"
    assert desk.ttl("meta") <= MAX_FAILURE_MS


def test_a_conflict(one: FlightCoordinator, two: FlightCoordinator) -> None:
    _own(one)
    other = FlightKey("scoring", *KEY.parts, tenant="acme", digest="d2")
    assert other.flight_id == KEY.flight_id

    assert two.acquire_or_join(Ask(other, "b")) == Conflict()


def test_a_decline(one: FlightCoordinator) -> None:
    assert one.acquire_or_join(Ask(KEY, "a", may_own=False)) == Declined()


def test_an_asker_of_waited_fences_and_refused_replays(
    one: FlightCoordinator, two: FlightCoordinator
) -> None:
    first, envelope = _own(one), _envelope()
    one.finish(first, envelope)
    second = two.acquire_or_join(Ask(KEY, "b", replay=False))
    assert isinstance(second, Ownership)
    two.fail(second, LIMITED)

    waited = one.acquire_or_join(Ask(KEY, "c", waited_fence=first.fence, replay=False))
    failed = one.acquire_or_join(Ask(KEY, "c", waited_fence=second.fence))

    assert waited == Replayed(first.fence, envelope.blob)
    assert isinstance(failed, Refused)


def test_acks(desk: Desk, one: FlightCoordinator) -> None:
    own = _own(one)
    stale = Ownership(KEY, "a", own.fence - 1, 1, own.action)
    shard = desk.names.shard_of(KEY.flight_id)

    assert one.mark_running(own) is Ack.OK
    assert one.append(own, 0, [b"a", b"\xff"]) == (Ack.OK, 2, 0)
    assert one.append(own, 4, [b"c"]) == (Ack.GAP, 2, 0)
    assert one.append(stale, 2, [b"c"]) == (Ack.STALE, 0, 0)
    assert one.mark_running(stale) is Ack.STALE
    assert one.beat(shard, [own, stale]) == [(Ack.OK, 0), (Ack.STALE, 0)]
    assert one.release(stale) is one.abandon(stale) is one.fail(stale, LIMITED) is Ack.STALE
    one.acquire_or_join(Ask(KEY, "b"))
    assert one.abandon(own) is Ack.JOINED
    assert one.release(own) is Ack.OK
    desk.client.delete(desk.keys["meta"])
    assert one.abandon(own) is one.finish(own, _envelope()) is Ack.LOST


def test_discard(one: FlightCoordinator, two: FlightCoordinator) -> None:
    own = _own(one)
    one.finish(own, _envelope())
    replayed = two.acquire_or_join(Ask(KEY, "b"))
    assert isinstance(replayed, Replayed)

    assert two.discard(KEY, Replayed(replayed.fence, b"other bytes")) is Ack.STALE
    assert two.discard(KEY, replayed) is Ack.OK
    assert _own(two, "b").action is Action.OWNER_TAKEOVER


def test_inspect(desk: Desk, one: FlightCoordinator, two: FlightCoordinator) -> None:
    assert one.inspect(KEY.flight_id) is None
    own = _own(one)
    two.acquire_or_join(Ask(KEY, "b"))
    desk.silence(1_000)

    view = two.inspect(KEY.flight_id)

    assert view is not None
    assert (view.state, view.fence, view.worker) == (FlightState.PENDING, own.fence, "w1")
    assert (view.followers, view.ownerships, view.error_code) == (1, 1, None)
    assert view.heartbeat_age_ms >= 1_000
    one.fail(own, LIMITED)
    view = two.inspect(KEY.flight_id)
    assert view is not None
    assert (view.error_code, view.retryable) == ("PROVIDER_RATE_LIMITED", True)
