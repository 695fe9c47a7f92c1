"""What must hold whatever the model says: the invariants of the protocol, step by step.

Knows nothing of the scripts' rules: only who was granted what, which writes were accepted, and
what each side had been told before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from flightsvc.flight.state import TRANSITIONS, FlightState
from tests.proof.world import Flight
from tests.proof.writes import blob_of


@dataclass
class Record:
    """What has happened to one flight so far."""

    #: token and fence of every ownership, in the order they were granted
    grants: list[tuple[str, int]] = field(default_factory=list)
    #: checksum of the answer that was accepted, by fence
    accepted: dict[int, str] = field(default_factory=dict)
    #: fences that an end or a release was accepted for
    ended: set[int] = field(default_factory=set)
    #: whether the shard's last fence was lost since the highest was granted
    forgotten: bool = False


class Promises:
    """The records of all flights."""

    def __init__(self, flights: int) -> None:
        self.records = [Record() for _ in range(flights)]
        self._set_back = False

    def set_back(self) -> None:
        """The clock was set back."""
        self._set_back = True

    def lost_fence(self) -> None:
        """The shard's last fence was lost."""
        for record in self.records:
            record.forgotten = True

    def granted(self, flight: int, token: str, fence: int, highest_seen: int) -> None:
        """Invariant 1: fences rise strictly.

        :param highest_seen: the highest fence that the asking worker knew of.
        """
        record = self.records[flight]
        if record.grants and record.grants[-1] == (token, fence):
            return  # asked again, told again
        highest = max((known for _, known in record.grants), default=0)
        # three faults together: lost data, a clock set back, and a worker that saw nothing
        excused = record.forgotten and self._set_back and highest_seen < highest
        assert fence > highest or excused, f"fence {fence} after {highest}"
        record.forgotten &= fence <= highest
        record.ended.discard(fence)  # only then can it have been granted before
        record.grants.append((token, fence))

    def written(self, verb: str, flight: int, token: str, fence: int, ack: str) -> None:
        """Invariants 2 and 6: only the last one who was granted the flight may write."""
        if ack not in ("OK", "GAP", "JOINED"):
            return
        record = self.records[flight]
        assert record.grants, f"{verb} of a flight that nobody was granted"
        assert record.grants[-1] == (token, fence), f"{verb} of {fence}, not {record.grants[-1]}"
        if verb not in ("finish", "fail") and ack == "OK":
            assert fence not in record.ended, f"{verb} after the end"
        if verb in ("finish", "fail", "release", "abandon") and ack == "OK":
            record.ended.add(fence)

    def finished(self, flight: int, fence: int, checksum: str) -> None:
        """Invariant 2: at most one accepted answer a fence, none below the highest accepted."""
        record = self.records[flight]
        same = record.accepted.setdefault(fence, checksum) == checksum
        assert same or record.forgotten, f"two answers under {fence}"
        highest = max(record.accepted)
        assert fence == highest or record.forgotten, f"accepted {fence} after {highest}"

    def asked(self, before: tuple[str | None, int], waited: int, action: str) -> None:
        """Invariant 4: who waited for a failed call never repeats it.

        :param before: state and fence of the flight when it was asked.
        """
        state, fence = before
        if state == "FAILED" and 0 < waited <= fence:
            assert action in ("REPLAY_FAILURE", "REPLAY_SUCCESS", "KEY_CONFLICT"), action

    def moved(self, verb: str, before: str | None, after: str | None) -> None:
        """States change along the table of transitions."""
        old = None if before is None else FlightState(before)
        new = None if after is None else FlightState(after)
        if old is not new:
            assert old in TRANSITIONS.get(verb, {}), f"{verb} in {old}"
            assert TRANSITIONS[verb][old] is new, f"{verb} from {old} to {new}"

    def look(self, number: int, flight: Flight) -> None:
        """Invariant 8: what is stored was accepted, under the fence that it bears."""
        meta, record = flight.meta, self.records[number]
        if meta is None or not meta.result_fence:
            return
        assert record.accepted.get(meta.result_fence) == meta.checksum
        if meta.state == "SUCCEEDED" and flight.result is not None:
            assert flight.result == blob_of(meta.checksum)
