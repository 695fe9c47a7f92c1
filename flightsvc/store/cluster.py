"""A Redis Cluster: each slot's master, and what moves.

Not the client library's cluster client: that one connects when it is made, sends a COMMAND GETKEYS
before each XREAD, lets the caller whose node froze look for another, and shares one limit of
connections among all nodes. What is taken from the library: connections, replies, CRC.

Source: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
"""

from __future__ import annotations

import logging
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

import gevent
import redis
import redis.exceptions as upstream
from redis.crc import key_slot

from flightsvc.settings import Settings
from flightsvc.settings.redis_url import Address, RedisUrl
from flightsvc.store.errors import stale
from flightsvc.store.refresh import Refresh, Trouble, first_answers
from flightsvc.store.server import Job, Server, Wiring

log = logging.getLogger(__name__)

T = TypeVar("T")

#: How often a command may be sent on by nodes that do not have its slot.
REDIRECTS = 5
#: Times in seconds to wait for a slot whose names are on their way to another node.
ON_ITS_WAY_S = (0.01, 0.02, 0.04, 0.08)
#: How many nodes are asked for the cluster's shape at once.
AT_ONCE = 3


class _Range(NamedTuple):
    """Slots with the same master, first and last included."""

    first: int
    last: int
    master: Address


class _Shape(NamedTuple):
    """What a node says of its cluster."""

    ranges: list[_Range]
    replicas: list[Address]


class ClusterRouter:
    """The way to the master of each slot.

    :param url: of kind ``cluster``; its nodes are where the others are learnt from.
    """

    one_slot_a_read = True

    def __init__(self, settings: Settings, url: RedisUrl) -> None:
        # one greenlet a shard reads; the places beside are for the moment in which some change
        self._wiring = Wiring.of(settings, url, reads=settings.flight_shards + 2)
        self._seeds = url.addresses
        self._refresh = Refresh(self._look, self._wiring.timeout_s)
        self._servers: dict[Address, Server] = {}
        self._replicas: list[Address] = []
        self._ranges: list[_Range] = []
        #: what a node said since the last look
        self._moved: dict[int, Address] = {}
        self._complaint = ""

    def command(self, name: str, job: Job[T]) -> T:
        return self._do(name, lambda server, asking: server.command(job, asking=asking))

    def read(self, name: str, job: Job[T]) -> T:
        return self._do(name, lambda server, asking: server.read(job, asking=asking))

    def server_of(self, name: str) -> str:
        address = self._owner(_slot(name))
        return _text(address) if address else ""

    def servers(self) -> list[Server]:
        if not self._ranges:
            self._refresh.wait()
        return [self._server(address) for address in dict.fromkeys(r.master for r in self._ranges)]

    def close(self) -> None:
        self._refresh.close()
        for server in self._servers.values():
            server.close()

    # -- commands ----------------------------------------------------------------------------

    def _do(self, name: str, at: Callable[[Server, bool], T]) -> T:
        """Do a job at the slot's master; again only where a node said that it did nothing."""
        slot = _slot(name)
        address, asking, waits = self._master_of(slot), False, iter(ON_ITS_WAY_S)
        for _ in range(REDIRECTS + len(ON_ITS_WAY_S)):
            try:
                return at(self._server(address), asking)
            except upstream.AskError as error:
                # a node that does not know its own address sends to one of its own host
                address = (error.host or address[0], error.port)
                asking = not isinstance(error, upstream.MovedError)
                if not asking:
                    self._moved[slot] = address
                    self._refresh.soon()
            except upstream.TryAgainError:
                wait = next(waits, None)
                if wait is None:
                    raise
                gevent.sleep(wait)
            except (upstream.RedisError, OSError) as error:
                if stale(error):
                    self._refresh.soon()
                raise
        raise upstream.ClusterError("the cluster's nodes do not agree who has the slot")

    def _master_of(self, slot: int) -> Address:
        address = self._owner(slot)
        if address is None:
            self._refresh.wait()
            address = self._owner(slot)
        if address is None:
            raise upstream.ClusterDownError(f"slot {slot} has no master")
        return address

    def _owner(self, slot: int) -> Address | None:
        moved = self._moved.get(slot)
        if moved is not None:
            return moved
        at = bisect_right(self._ranges, slot, key=lambda found: found.first) - 1
        if at < 0 or self._ranges[at].last < slot:
            return None
        return self._ranges[at].master

    def _server(self, address: Address) -> Server:
        server = self._servers.get(address)
        if server is None:
            host, port = address
            server = Server(_text(address), self._wiring, host=host, port=port)
            self._servers[address] = server
        return server

    # -- the cluster's shape -------------------------------------------------------------------

    def _look(self) -> None:
        try:
            shape = self._shape()
        except (upstream.RedisError, OSError) as error:
            self._complain(error)
            raise
        self._complaint = ""
        masters = {found.master for found in shape.ranges}
        self._ranges, self._replicas, self._moved = shape.ranges, shape.replicas, {}
        for address in self._servers.keys() - masters:
            self._servers.pop(address).drop()

    def _shape(self) -> _Shape:
        trouble: Trouble = upstream.ConnectionError("no node is known")
        for addresses in self._batches():
            questions = [partial(self._ask, address) for address in addresses]
            try:
                return first_answers(questions, 1, self._wiring.timeout_s)[0]
            except (upstream.RedisError, OSError) as error:
                trouble = error
        raise trouble

    def _batches(self) -> Iterator[list[Address]]:
        """Masters first: a replica that was one before its failover may not know of it yet."""
        masters = list({found.master for found in self._ranges})
        others = list({*self._replicas, *self._seeds}.difference(masters))
        for addresses in (masters, others):
            random.shuffle(addresses)
            for at in range(0, len(addresses), AT_ONCE):
                yield addresses[at : at + AT_ONCE]

    def _ask(self, address: Address) -> _Shape:
        host, port = address
        # of its own: the node's places may all be taken by commands that wait for a frozen one
        pool = self._wiring.pool(1, self._wiring.timeout_s, host=host, port=port)
        try:
            client: Any = redis.Redis(connection_pool=pool)
            slots: Any = client.execute_command("CLUSTER", "SLOTS")
        except upstream.ResponseError as error:
            raise upstream.ConnectionError(f"{_text(address)}: {error}") from error
        finally:
            pool.disconnect()
        if not slots:
            raise upstream.ConnectionError(f"{_text(address)} is in no cluster that has slots")
        return _read(slots, host)

    def _complain(self, error: Trouble) -> None:
        if str(error) != self._complaint:
            self._complaint = str(error)
            log.warning("no node of the cluster says who has which slot: %s", error)


def _read(slots: list[list[Any]], asked: str) -> _Shape:
    """The reply to CLUSTER SLOTS; a node without an address is where it was asked."""
    ranges: list[_Range] = []
    replicas: set[Address] = set()
    for first, last, *nodes in slots:
        master, *others = ((node[0].decode() if node[0] else asked, node[1]) for node in nodes)
        ranges.append(_Range(first, last, master))
        replicas.update(others)
    return _Shape(sorted(ranges), list(replicas))


@lru_cache(maxsize=4096)
def _slot_of_tag(tag: str) -> int:
    return key_slot(tag.encode())


def _slot(name: str) -> int:
    """The slot of a name; all names of ours begin with their tag."""
    return _slot_of_tag(name.partition("}")[0] + "}")


def _text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"
