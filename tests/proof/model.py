"""What an owner's writes must do, in plain Python; with :mod:`deciding` the whole protocol."""

from __future__ import annotations

from tests.proof.deciding import Deciding, Told
from tests.proof.world import (
    EVENTS_TTL,
    FAILURE_TTL,
    LIVE_TTL,
    RESULT_TTL,
    Error,
    Flight,
    told_failure,
)


class Model(Deciding):
    """The protocol once more; each method does what the script of its name must do."""

    def mark_running(self, number: int, token: str, fence: int) -> str:
        flight, ack = self._mine(number, token, fence)
        if ack == "OK" and flight.meta:
            flight.meta.state, flight.meta.heartbeat = "RUNNING", self.ms
            self.expire(f"meta:{flight.name}", LIVE_TTL)
        return ack

    def beat(self, owned: list[tuple[int, str, int]]) -> list[tuple[str, int]]:
        answers = [self._beat(*one) for one in owned]
        self.live = {name: at for name, at in self.live.items() if at >= self.ms - LIVE_TTL}
        if self.live:
            self.expire("live", LIVE_TTL)
        else:
            self.expires.pop("live", None)
        return answers

    def _beat(self, number: int, token: str, fence: int) -> tuple[str, int]:
        flight, ack = self._mine(number, token, fence)
        if ack != "OK" or not flight.meta:
            return ack, 0
        flight.meta.heartbeat = self.ms
        for part in ("meta", "events", "interest"):
            if getattr(flight, part):
                self.expire(f"{part}:{flight.name}", LIVE_TTL)
        self.live[flight.name] = self.ms
        return "OK", sum(lease > self.ms for lease in flight.interest.values())

    def append(self, number: int, token: str, fence: int, first: int, chunks: list[bytes]) -> Told:
        flight, ack = self._mine(number, token, fence)
        meta = flight.meta
        if ack != "OK" or not meta:
            return Told(ack)
        if flight.events is None or not flight.events.events:
            meta.seq = 0
        if first > meta.seq:
            return Told("GAP", attempt=meta.seq, followers=len(flight.interest))
        for chunk in chunks[meta.seq - first :]:
            said = {"kind": "chunk", "fence": fence, "seq": meta.seq, "data": chunk.decode()}
            self.say(flight, None, **said)
            meta.seq += 1
        self.expire(f"meta:{flight.name}", LIVE_TTL)
        if flight.events is not None:
            self.expire(f"events:{flight.name}", LIVE_TTL)
        return Told("OK", attempt=meta.seq, followers=len(flight.interest))

    def finish(self, number: int, token: str, fence: int, blob: bytes, checksum: str) -> str:
        flight, ack = self._mine(number, token, fence, ended=True)
        meta = flight.meta
        if ack != "OK" or not meta:
            return ack
        if not meta.flying:
            same = meta.state == "SUCCEEDED" and meta.checksum == checksum
            return "OK" if same else "CONFLICT"
        meta.state, meta.result_fence, meta.checksum = "SUCCEEDED", fence, checksum
        flight.result = blob
        self.expire(f"result:{flight.name}", RESULT_TTL)
        self.expire(f"meta:{flight.name}", RESULT_TTL)
        self.say(flight, EVENTS_TTL, kind="succeeded", fence=fence, chunks=meta.seq)
        self.forget_followers(flight)
        self.lands(flight)
        return "OK"

    def fail(self, number: int, token: str, fence: int, error: Error) -> str:
        """``not_before`` of the error is the wait from now."""
        flight, ack = self._mine(number, token, fence, ended=True)
        meta = flight.meta
        if ack != "OK" or not meta:
            return ack
        if not meta.flying:
            same = meta.error is not None and meta.error.code == error.code
            return "OK" if same else "CONFLICT"
        wait = error.not_before
        meta.state = "FAILED"
        meta.error = Error(error.error_type, error.code, error.retryable, error.status, 0)
        meta.error.not_before = self.ms + wait
        self.expire(f"meta:{flight.name}", max(wait, FAILURE_TTL))
        self.say(flight, EVENTS_TTL, **told_failure(meta, wait), fallback="")
        self.forget_followers(flight)
        self.lands(flight)
        return "OK"

    def release(self, number: int, token: str, fence: int) -> str:
        flight, ack = self._mine(number, token, fence)
        if ack == "OK" and flight.meta:
            flight.meta.state, flight.meta.owner = "PENDING", ""
            flight.meta.ownerships -= 1
            self.expire(f"meta:{flight.name}", LIVE_TTL)
            self.say(flight, LIVE_TTL, kind="released", fence=fence)
            self.lands(flight)
        return ack

    def abandon(self, number: int, token: str, fence: int) -> str:
        flight, ack = self._mine(number, token, fence)
        if ack != "OK":
            return ack
        if any(lease > self.ms for lease in flight.interest.values()):
            return "JOINED"
        for part in ("meta", "events", "interest"):
            self.drop(f"{part}:{flight.name}")
        self.lands(flight)
        return "OK"

    def leave(self, number: int, worker: str) -> None:
        flight = self.flights[number]
        flight.interest.pop(worker, None)
        if not flight.interest:
            self.expires.pop(f"interest:{flight.name}", None)

    def discard(self, number: int, fence: int, blob: bytes) -> str:
        flight = self.flights[number]
        meta = flight.meta
        known = meta.result_fence if meta else 0
        if flight.result != blob or not known or known != fence:
            return "STALE"
        self.drop(f"result:{flight.name}")
        return "OK"

    def forget(self, number: int) -> str:
        flight = self.flights[number]
        self.drop(f"result:{flight.name}")
        if flight.meta is None:
            return "LOST"
        if flight.meta.flying:
            return "BUSY"
        for part in ("meta", "events"):
            self.drop(f"{part}:{flight.name}")
        return "OK"

    def _mine(
        self, number: int, token: str, fence: int, *, ended: bool = False
    ) -> tuple[Flight, str]:
        """Whether a write is its owner's, to a flight in the air (or ended, where that counts)."""
        flight = self.flights[number]
        meta = flight.meta
        if meta is None:
            return flight, "LOST"
        mine = (meta.owner, meta.fence) == (token, fence) and (meta.flying or ended)
        return flight, "OK" if mine else "STALE"
