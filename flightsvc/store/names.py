"""The names of everything in Redis.

All names of one flight share one hash tag, so that every script runs in one slot of a Redis
Cluster; the tag carries protocol version and shard count, so that clusters which disagree
about either never meet.

``meta:<id>``          hash: the flight's state; TTL of the state.
``result:<id>``        string: the serialized answer of ``result_fence``; the result's TTL.
``events:<id>``        stream: ``owned``, chunks, ``released``, one terminal event, all fenced.
``interest:<id>``      hash: follower worker to the end of its lease in ms.
``lock:<id>``          hash: which flight holds a session's lock; the lease.
``live``               sorted set: flight id by heartbeat in ms, to list flights without SCAN.
``wake:<worker>``      stream of length 1: wakes that worker's reader.
``fence``              the shard's last fence; no TTL.

What the workers share beside their flights carries the namespace alone as its tag:

``switches``           hash: modules that are paused, need a person or are rolled back; no TTL.
``streaks``            hash: module and code to failures without a success between; a day.
``hints``              hash: provider and model to the end of its breaker's open time in ms.
``probe:<target>``     string: who tries whether a target is back; the lease.
``claim:<name>``       string: who speaks for all workers in a window; the window.
``count:<ms>:<name>``  hash: part of a window to how often something happened; the window.
``answer:<id>``        string: the last good answer of a place in a session, as JSON; a day.
``forgotten``          sorted set: flights that no worker may remember; ten minutes.
``events:state``       stream: state changes that failures asked for; a week.
"""

from __future__ import annotations

#: Changes whenever two versions of the scripts could misread each other.
PROTOCOL = 1


class Names:
    """Names under one namespace.

    :param namespace: first part of every name.
    :param shards: how many hash tags flights are spread over.
    """

    def __init__(self, namespace: str, shards: int) -> None:
        self.shards = shards
        self._tags = [f"{{{namespace}.v{PROTOCOL}.{shards}:{n}}}" for n in range(shards)]

    def shard_of(self, flight_id: str) -> int:
        """The shard of a flight, from its id of 32 hex digits."""
        return int(flight_id, 16) % self.shards

    def flight(self, flight_id: str) -> dict[str, str]:
        """Every name that a script about one flight may ask for."""
        tag = self._tags[self.shard_of(flight_id)]
        return {
            "meta": f"{tag}:meta:{flight_id}",
            "result": f"{tag}:result:{flight_id}",
            "events": f"{tag}:events:{flight_id}",
            "interest": f"{tag}:interest:{flight_id}",
            "live": f"{tag}:live",
            "fence": f"{tag}:fence",
        }

    def lock(self, lock_id: str) -> dict[str, str]:
        """Every name that a script about one session lock may ask for."""
        tag = self._tags[self.shard_of(lock_id)]
        return {
            "lock": f"{tag}:lock:{lock_id}",
            "events": f"{tag}:events:{lock_id}",
            "fence": f"{tag}:fence",
        }

    def live(self, shard: int) -> str:
        """The list of a shard's flights in the air."""
        return f"{self._tags[shard]}:live"

    def wake(self, worker: str, shard: int = 0) -> str:
        """The stream that wakes a worker's reader."""
        return f"{self._tags[shard]}:wake:{worker}"


class SharedNames:
    """Names of what the workers of one namespace share beside their flights, in one slot.

    :param namespace: as for :class:`Names`; their tags never meet.
    """

    def __init__(self, namespace: str) -> None:
        self._tag = f"{{{namespace}}}"
        self.switches = f"{self._tag}:switches"
        self.streaks = f"{self._tag}:streaks"
        self.hints = f"{self._tag}:hints"
        self.forgotten = f"{self._tag}:forgotten"
        self.events = f"{self._tag}:events:state"

    def probe(self, target: str) -> str:
        """The lease to try a target."""
        return f"{self._tag}:probe:{target}"

    def claim(self, name: str) -> str:
        """The right to speak for all workers."""
        return f"{self._tag}:claim:{name}"

    def answer(self, place_id: str) -> str:
        """The last good answer of a place in a session."""
        return f"{self._tag}:answer:{place_id}"

    def count(self, name: str, window_ms: int) -> str:
        """What was counted under a name over a window."""
        return f"{self._tag}:count:{window_ms}:{name}"
