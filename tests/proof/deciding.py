"""What an asker must be told, in plain Python: the decision table of docs/protocol.md."""

from __future__ import annotations

from dataclasses import dataclass

from tests.proof.world import (
    DEADLINE,
    DETECT,
    FAILURE_TTL,
    LIVE_TTL,
    Error,
    Event,
    Flight,
    Meta,
    World,
    place,
    told_failure,
)

OWNERSHIPS = 5
SILENT = 3

GAVE_UP = ("UNEXPECTED", "FLIGHT_OWNERS_LOST", False, 503)


@dataclass(frozen=True)
class Question:
    """Who asks for a flight, and how."""

    flight: int
    token: str
    worker: str
    digest: str = ""
    highest: int = 0
    waited: int = 0
    replay: bool = True
    may_own: bool = True


@dataclass(frozen=True)
class Told:
    """An answer to a question; only what belongs to the action is set.

    :param wait: ms to the takeover, or to the next try.
    :param by_ttl: the wait is what is left of the failure's TTL.
    """

    action: str
    fence: int = 0
    attempt: int = 0
    events_from: Event | None = None
    last_event: Event | None = None
    envelope: bytes = b""
    error: Error | None = None
    wait: int = 0
    by_ttl: bool = False
    followers: int = 0


class Deciding(World):
    """Answers questions."""

    def acquire(self, ask: Question) -> Told:
        flight = self.flights[ask.flight]
        meta = flight.meta
        if meta is None:
            return self._own(flight, ask, "OWNER_NEW", 1, 0)
        if meta.digest != ask.digest:
            return Told("KEY_CONFLICT")
        if meta.flying and meta.owner == ask.token:
            meta.heartbeat = self.ms
            self.expire(f"meta:{flight.name}", LIVE_TTL)
            return Told(meta.action, meta.fence, meta.ownerships)
        waited_for = 0 < ask.waited <= meta.result_fence
        if (waited_for or (meta.state == "SUCCEEDED" and ask.replay)) and flight.result is not None:
            return Told("REPLAY_SUCCESS", meta.result_fence, envelope=flight.result)
        if meta.state == "SUCCEEDED":
            return self._own(flight, ask, "OWNER_TAKEOVER", 1, 0)
        if meta.state == "FAILED":
            return self._after_failure(flight, meta, ask)
        return self._in_the_air(flight, meta, ask)

    def _after_failure(self, flight: Flight, meta: Meta, ask: Question) -> Told:
        assert meta.error is not None
        mine = 0 < ask.waited <= meta.fence
        again = meta.error.retryable and meta.error.not_before <= self.ms
        if mine or not again or meta.ownerships >= OWNERSHIPS:
            return self._refusal(flight, meta)
        return self._own(flight, ask, "OWNER_TAKEOVER", meta.ownerships + 1, meta.silent)

    def _in_the_air(self, flight: Flight, meta: Meta, ask: Question) -> Told:
        released = not meta.owner
        patience = min(meta.heartbeat + DETECT, meta.deadline) - self.ms
        ahead = meta.heartbeat - self.ms > DETECT
        if not released and patience >= 0 and not ahead:
            return self._follow(flight, meta, ask, patience + 1)
        if not ask.may_own:
            return Told("DECLINED")
        if not released and meta.silent >= SILENT:
            return self._give_up(flight, meta)
        silent = meta.silent + (not released)
        return self._own(flight, ask, "OWNER_TAKEOVER", meta.ownerships + 1, silent)

    def _own(self, flight: Flight, ask: Question, action: str, attempt: int, silent: int) -> Told:
        if not ask.may_own:
            return Told("DECLINED")
        self.fence = max(self.fence + 1, self.us, ask.highest + 1)
        before = flight.meta
        if before is not None and flight.events is not None:
            old = before.events_from.id
            flight.events.events = [e for e in flight.events.events if place(e.id) >= place(old)]
        flight.interest.pop(ask.worker, None)
        if not flight.interest:
            self.expires.pop(f"interest:{flight.name}", None)
        flight.meta = Meta(
            state="PENDING",
            fence=self.fence,
            owner=ask.token,
            worker=ask.worker,
            digest=ask.digest,
            ownerships=attempt,
            silent=silent,
            action=action,
            created=self.ms,
            heartbeat=self.ms,
            deadline=self.ms + DEADLINE,
            events_from=self.announce(flight, self.fence),
            result_fence=before.result_fence if before else 0,
            checksum=before.checksum if before else "",
        )
        self.expire(f"meta:{flight.name}", LIVE_TTL)
        self.live[flight.name] = self.ms
        self.expire("live", LIVE_TTL)
        return Told(action, self.fence, attempt)

    def _follow(self, flight: Flight, meta: Meta, ask: Question, patience: int) -> Told:
        flight.interest[ask.worker] = self.ms + 2 * DETECT
        self.expire(f"interest:{flight.name}", LIVE_TTL)
        if flight.events is None:
            meta.events_from, meta.seq = self.announce(flight, meta.fence), 0
        assert flight.events is not None
        return Told(
            "FOLLOWER_WAIT",
            meta.fence,
            events_from=meta.events_from,
            last_event=flight.events.last,
            wait=patience,
        )

    def _refusal(self, flight: Flight, meta: Meta) -> Told:
        assert meta.error is not None
        by_ttl = not meta.error.retryable or meta.ownerships >= OWNERSHIPS
        until = self.expires[f"meta:{flight.name}"] if by_ttl else meta.error.not_before
        wait = max(until - self.ms, 0)
        return Told("REPLAY_FAILURE", meta.fence, error=meta.error, wait=wait, by_ttl=by_ttl)

    def _give_up(self, flight: Flight, meta: Meta) -> Told:
        meta.state, meta.owner = "FAILED", ""
        meta.error = Error(*GAVE_UP, not_before=self.ms)
        self.expire(f"meta:{flight.name}", FAILURE_TTL)
        self.say(flight, LIVE_TTL, **told_failure(meta, FAILURE_TTL))
        self.lands(flight)
        return self._refusal(flight, meta)
