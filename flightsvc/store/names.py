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
``fence``              the shard's last fence; the one name without a TTL.
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
