"""The only caller of the flight scripts: replies become typed outcomes.

Every method raises :class:`~flightsvc.store.StoreError` where Redis did not answer; what that
means for a flight is decided by owner, follower and service, never here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from flightsvc.errors import FailureType
from flightsvc.flight import verbs
from flightsvc.flight.key import FlightKey
from flightsvc.flight.serializer import Envelope
from flightsvc.flight.state import Ack, Action, Failure, FlightView
from flightsvc.settings import Settings, StageSettings
from flightsvc.store import Names, Store, Verb

#: Failed ownerships of one flight after which the failure stands until its TTL.
MAX_OWNERSHIPS = 5
#: Takeovers of silent owners after which a flight fails: it may be what kills them.
MAX_SILENT = 3
#: Longest time in ms that a failure is kept, whatever the model's Retry-After says.
MAX_FAILURE_MS = 600_000
#: Time in ms that events outlive a flight's end, for readers that come late.
EVENTS_TTL_MS = 30_000


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to Redis about a flight.

    :param token: names the asking flight object, so that a lost reply can be asked again.
    :param waited_fence: the fence that the asker waited for; its failure is final for the asker.
    :param replay: whether an earlier answer is welcome.
    :param may_own: whether the asker may run the call.
    """

    key: FlightKey
    token: str
    waited_fence: int = 0
    replay: bool = True
    may_own: bool = True


@dataclass(slots=True)
class Ownership:
    """A granted flight; the fence changes if the flight is lost and granted again."""

    key: FlightKey
    token: str
    fence: int
    attempt: int
    action: Action


@dataclass(frozen=True, slots=True)
class Following:
    """Somebody else owns the flight.

    :param patience_ms: after this time the owner, if silent, can be taken over.
    """

    fence: int
    events_from: str
    last_event: str
    patience_ms: int


@dataclass(frozen=True, slots=True)
class Replayed:
    """A stored answer, still packed."""

    fence: int
    envelope: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """A remembered failure."""

    fence: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class Conflict:
    """The explicit key stands for another request."""


@dataclass(frozen=True, slots=True)
class Declined:
    """The flight needs an owner, and the asker may not be one."""


class Appended(NamedTuple):
    """The answer to an append.

    :param expected: sequence number that is expected next.
    :param followers: workers that follow the flight.
    """

    ack: Ack
    expected: int
    followers: int


Outcome = Ownership | Following | Replayed | Refused | Conflict | Declined


class FlightCoordinator:
    """Asks and tells Redis about flights.

    :param worker: names this worker among all workers of the namespace.
    """

    def __init__(self, store: Store, names: Names, settings: Settings, worker: str) -> None:
        self._store = store
        self._names = names
        self._settings = settings
        self.worker = worker
        #: the highest fence that this worker has seen, in whatever shard
        self.highest_fence = 0
        # a flight outlives some silent owners, so that their number can be counted
        self.live_ttl_ms = max(5 * settings.takeover_detect_ms, 30_000)

    def acquire_or_join(self, ask: Ask) -> Outcome:
        """Own, follow or replay: one round trip."""
        key, stage = ask.key, self._settings.stage(ask.key.stage)
        reply = self._run(
            verbs.ACQUIRE,
            key,
            key.flight_id,
            ask.token,
            self.worker,
            key.tenant,
            key.stage,
            key.digest,
            self._settings.takeover_detect_ms,
            self.deadline_ms(stage),
            self.live_ttl_ms,
            self._failure_ttl_ms(stage),
            self.highest_fence,
            ask.waited_fence,
            int(ask.replay),
            int(ask.may_own),
            MAX_OWNERSHIPS,
            MAX_SILENT,
        )
        return self._outcome(ask, reply)

    def saw(self, fence: int) -> None:
        """Ask for no fence below this one any more, whatever Redis may have lost."""
        self.highest_fence = max(self.highest_fence, fence)

    def deadline_ms(self, stage: StageSettings) -> int:
        """How long one ownership may last: its budget, and time to store the answer."""
        return stage.span_ms + self._settings.takeover_detect_ms

    def _failure_ttl_ms(self, stage: StageSettings) -> int:
        """A failure outlives the next question of everybody who waited for it."""
        longest_ms = min(_ms(stage.failure_ttl_s), MAX_FAILURE_MS)
        return max(longest_ms, self._settings.takeover_detect_ms + 1_000)

    def mark_running(self, own: Ownership) -> Ack:
        """PENDING → RUNNING."""
        reply = self._run(verbs.MARK_RUNNING, own.key, own.token, own.fence, self.live_ttl_ms)
        return Ack(reply[0].decode())

    def beat(self, shard: int, owned: Sequence[Ownership]) -> list[tuple[Ack, int]]:
        """Keep a shard's flights alive.

        :returns: for each, whether it is still this worker's, and the followers it has.
        """
        keys, args = [self._names.live(shard)], [self.live_ttl_ms]
        each: list[str | int] = []
        for own in owned:
            names = self._names.flight(own.key.flight_id)
            keys += [names[key] for key in verbs.BEAT.each_keys]
            each += [own.key.flight_id, own.token, own.fence]
        reply = self._store.run(verbs.BEAT, keys, [*args, *each])
        return [(Ack(reply[i].decode()), int(reply[i + 1])) for i in range(0, len(reply), 2)]

    def append(self, own: Ownership, first: int, chunks: Sequence[bytes]) -> Appended:
        """Add chunks to a streaming flight's events.

        :param first: sequence number of the first chunk.
        :raises StoreError: if Redis refuses, or does not answer; then they may be there or not.
        """
        reply = self._run(
            verbs.APPEND, own.key, own.token, own.fence, self.live_ttl_ms, first, *chunks
        )
        return Appended(Ack(reply[0].decode()), int(reply[1]), int(reply[2]))

    def finish(self, own: Ownership, envelope: Envelope) -> Ack:
        """Store the answer, set SUCCEEDED, tell the followers."""
        reply = self._run(
            verbs.FINISH,
            own.key,
            own.key.flight_id,
            own.token,
            own.fence,
            envelope.blob,
            envelope.codec,
            envelope.size,
            envelope.checksum,
            _ms(self._settings.stage(own.key.stage).result_ttl_s),
            EVENTS_TTL_MS,
        )
        return Ack(reply[0].decode())

    def remembered(self, own: Ownership, failure: Failure) -> Failure:
        """A failure as it will be told from now on: when asking again can have another answer."""
        wait_ms = min(failure.retry_after_ms, MAX_FAILURE_MS)
        if not failure.retryable:
            wait_ms = max(wait_ms, self._failure_ttl_ms(self._settings.stage(own.key.stage)))
        return replace(failure, retry_after_ms=wait_ms)

    def fail(self, own: Ownership, failure: Failure, fallback: bytes = b"") -> Ack:
        """Set FAILED and tell the followers.

        :param fallback: a packed stand-in answer for those who waited.
        """
        reply = self._run(
            verbs.FAIL,
            own.key,
            own.key.flight_id,
            own.token,
            own.fence,
            failure.error_type.value,
            failure.code,
            int(failure.retryable),
            failure.status,
            min(failure.retry_after_ms, MAX_FAILURE_MS),
            self._failure_ttl_ms(self._settings.stage(own.key.stage)),
            EVENTS_TTL_MS,
            fallback,
        )
        return Ack(reply[0].decode())

    def release(self, own: Ownership) -> Ack:
        """Give the flight back: takeable at once."""
        reply = self._run(
            verbs.RELEASE, own.key, own.key.flight_id, own.token, own.fence, self.live_ttl_ms
        )
        return Ack(reply[0].decode())

    def abandon(self, own: Ownership) -> Ack:
        """Delete the flight if nobody elsewhere waits for it."""
        reply = self._run(verbs.ABANDON, own.key, own.key.flight_id, own.token, own.fence)
        return Ack(reply[0].decode())

    def leave(self, key: FlightKey) -> None:
        """This worker follows the flight no longer: its owner sees it before the lease ends."""
        self._run(verbs.LEAVE, key, self.worker)

    def discard(self, key: FlightKey, replayed: Replayed) -> Ack:
        """Throw an unreadable stored answer away, if it is still that one."""
        # the scripts' own hash function; it compares bytes, it protects nothing
        seen = hashlib.sha1(replayed.envelope, usedforsecurity=False).hexdigest()
        return Ack(self._run(verbs.DISCARD, key, replayed.fence, seen)[0].decode())

    def forget(self, flight_id: str) -> Ack:
        """Throw away what an ended flight came to; BUSY: it is in the air."""
        names = self._names.flight(flight_id)
        reply = self._store.run(verbs.FORGET, verbs.FORGET.key_list(names), [])
        return Ack(reply[0].decode())

    def inspect(self, flight_id: str) -> FlightView | None:
        """A flight as Redis holds it, or None."""
        names = self._names.flight(flight_id)
        reply = self._store.run(verbs.INSPECT, verbs.INSPECT.key_list(names), [])
        return FlightView.read(flight_id, reply)

    def live(self, shard: int, most: int) -> tuple[int, list[tuple[str, list[bytes | int]]]]:
        """How many flights of a shard are in the air, and some of them as ``survey.lua`` shows
        them, by their ids."""
        count, ids = self._store.run(
            verbs.LIVE, [self._names.live(shard)], [self.live_ttl_ms, most]
        )
        flight_ids = [each.decode() for each in ids]
        if not flight_ids:
            return count, []
        names = [self._names.flight(each) for each in flight_ids]
        keys = [each[key] for each in names for key in verbs.SURVEY.each_keys]
        rows = self._store.run(verbs.SURVEY, keys, [])
        return count, list(zip(flight_ids, rows, strict=True))

    def _run(self, verb: Verb, key: FlightKey, *args: str | bytes | int) -> list[bytes]:
        keys = verb.key_list(self._names.flight(key.flight_id))
        reply: list[bytes] = self._store.run(verb, keys, args)
        return reply

    def _outcome(self, ask: Ask, reply: list[bytes]) -> Outcome:
        action = Action(reply[0].decode())
        if action is Action.KEY_CONFLICT:
            return Conflict()
        if action is Action.DECLINED:
            return Declined()
        fence = int(reply[1])
        self.saw(fence)
        if action is Action.FOLLOWER_WAIT:
            return Following(fence, reply[2].decode(), reply[3].decode(), int(reply[4]))
        if action is Action.REPLAY_SUCCESS:
            return Replayed(fence, reply[2])
        if action is Action.REPLAY_FAILURE:
            return Refused(fence, read_failure(*reply[2:7]))
        return Ownership(ask.key, ask.token, fence, int(reply[2]), action)


def read_failure(
    error_type: bytes, code: bytes, retryable: bytes, status: bytes, wait_ms: bytes
) -> Failure:
    """A failure from the fields that the scripts write."""
    return Failure(
        FailureType(error_type.decode()),
        code.decode(),
        retryable == b"1",
        int(status),
        int(wait_ms),
    )


def _ms(seconds: float) -> int:
    return max(1, int(seconds * 1000))
