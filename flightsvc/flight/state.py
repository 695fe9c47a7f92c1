"""The states of a flight, what an asker is told, and how a flight can end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from flightsvc.errors import CallFailed, FailureType, FallbackAnswer, FlightSvcError
from flightsvc.flight.serializer import Payload


class FlightState(str, Enum):
    """Where a flight is, as Redis holds it."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


#: Legal transitions by verb; ``None`` is a flight that does not exist. Tested equal to lua/.
TRANSITIONS: dict[str, dict[FlightState | None, FlightState | None]] = {
    "own": {
        None: FlightState.PENDING,
        FlightState.PENDING: FlightState.PENDING,
        FlightState.RUNNING: FlightState.PENDING,
        FlightState.SUCCEEDED: FlightState.PENDING,
        FlightState.FAILED: FlightState.PENDING,
    },
    "give_up": {
        FlightState.PENDING: FlightState.FAILED,
        FlightState.RUNNING: FlightState.FAILED,
    },
    "mark_running": {
        FlightState.PENDING: FlightState.RUNNING,
        FlightState.RUNNING: FlightState.RUNNING,
    },
    "finish": {
        FlightState.PENDING: FlightState.SUCCEEDED,
        FlightState.RUNNING: FlightState.SUCCEEDED,
    },
    "fail": {
        FlightState.PENDING: FlightState.FAILED,
        FlightState.RUNNING: FlightState.FAILED,
    },
    "release": {
        FlightState.PENDING: FlightState.PENDING,
        FlightState.RUNNING: FlightState.PENDING,
    },
    "abandon": {FlightState.PENDING: None, FlightState.RUNNING: None},
    "forget": {FlightState.SUCCEEDED: None, FlightState.FAILED: None},
}


class Action(str, Enum):
    """What an asker is told to do."""

    OWNER_NEW = "OWNER_NEW"
    OWNER_TAKEOVER = "OWNER_TAKEOVER"
    FOLLOWER_WAIT = "FOLLOWER_WAIT"
    REPLAY_SUCCESS = "REPLAY_SUCCESS"
    REPLAY_FAILURE = "REPLAY_FAILURE"
    KEY_CONFLICT = "KEY_CONFLICT"
    DECLINED = "DECLINED"


class Ack(str, Enum):
    """What an owner's write is answered with."""

    OK = "OK"
    #: another fence holds the flight
    STALE = "STALE"
    #: there is no such flight
    LOST = "LOST"
    #: this ownership already ended differently
    CONFLICT = "CONFLICT"
    #: chunks are missing before these
    GAP = "GAP"
    #: another flight holds the lock; this one is in the air
    BUSY = "BUSY"
    #: somebody else still waits
    JOINED = "JOINED"


class Role(str, Enum):
    """What a caller was to the flight that answered it."""

    OWNER = "owner"
    FOLLOWER = "follower"
    REPLAY = "replay"
    L1 = "l1"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Failure:
    """How a call failed, as every waiter is told and as Redis keeps it.

    :param retry_after_ms: no new call before this time from now, in ms; 0 if none is known.
    """

    error_type: FailureType
    code: str
    retryable: bool
    status: int
    retry_after_ms: int = 0

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Classify what a call raised (first article, step 8)."""
        if isinstance(error, FallbackAnswer):
            return cls.of(error.failure)
        if isinstance(error, FlightSvcError):
            wait_ms = max(0, int((error.retry_after_s or 0) * 1000))
            return cls(error.failure_type, error.code, error.retryable, error.status, wait_ms)
        if isinstance(error, TimeoutError) or type(error).__name__ == "Timeout":
            return cls(FailureType.TIMEOUT, "CALL_TIMEOUT", True, 504)
        return cls(FailureType.UNEXPECTED, "UNEXPECTED", True, 500)

    def error(self, flight_id: str, fence: int) -> CallFailed:
        """A fresh exception for one waiter."""
        return CallFailed(
            f"The one call behind this flight failed: {self.code}.",
            failure_type=self.error_type,
            code=self.code,
            retryable=self.retryable,
            status=self.status,
            retry_after_s=self.retry_after_ms / 1000 if self.retry_after_ms else None,
            flight_id=flight_id,
            fence=fence,
        )


@dataclass(frozen=True, slots=True)
class Landed:
    """A flight's end with an answer, or with what stands in for one.

    :param fallback: where the answer comes from, if it is not the call's own; never stored.
    """

    payload: Payload
    role: Role
    fence: int
    fallback: str | None = None


@dataclass(frozen=True, slots=True)
class Crashed:
    """A flight's end with a failure; ``cause`` is known in the worker that made the call.

    :param error: raised as it is, instead of a :class:`CallFailed`, where no call failed.
    """

    failure: Failure
    fence: int = 0
    cause: BaseException | None = None
    error: FlightSvcError | None = None

    @classmethod
    def as_is(cls, error: FlightSvcError) -> Crashed:
        """An end without a failed call: every waiter gets (a copy of) this error."""
        return cls(Failure.of(error), error=error)


End = Landed | Crashed


@dataclass(frozen=True, slots=True)
class FlightView:
    """A flight as Redis holds it. Ages are by Redis's clock, in ms."""

    flight_id: str
    state: FlightState
    stage: str
    tenant: str
    fence: int
    worker: str
    ownerships: int
    followers: int
    age_ms: int
    heartbeat_age_ms: int
    error_code: str | None
    retryable: bool | None
    size: int | None
    #: how it failed, if it did
    failure: Failure | None = None

    @classmethod
    def read(cls, flight_id: str, reply: list[Any]) -> FlightView | None:
        """From the reply of ``inspect.lua``; None where there is no such flight."""
        now, followers, pairs = int(reply[0]), int(reply[1]), reply[2:]
        meta = {pairs[i].decode(): pairs[i + 1].decode() for i in range(0, len(pairs), 2)}
        if "state" not in meta:
            return None
        retryable = meta.get("retryable")
        return cls(
            flight_id=flight_id,
            state=FlightState(meta["state"]),
            stage=meta["stage"],
            tenant=meta["tenant"],
            fence=int(meta["fence"]),
            worker=meta.get("worker", ""),
            ownerships=int(meta["ownerships"]),
            followers=followers,
            age_ms=now - int(meta["created"]),
            heartbeat_age_ms=now - int(meta["heartbeat"]),
            error_code=meta.get("code"),
            retryable=None if retryable is None else retryable == "1",
            size=int(meta["size"]) if "size" in meta else None,
            failure=_failure(meta, now),
        )


def _failure(meta: Mapping[str, str], now_ms: int) -> Failure | None:
    if meta["state"] != FlightState.FAILED.value:
        return None
    return Failure(
        FailureType(meta["error_type"]),
        meta["code"],
        meta["retryable"] == "1",
        int(meta["status"]),
        max(0, int(meta["not_before"]) - now_ms),
    )
