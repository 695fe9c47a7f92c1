"""How an owner's chunks reach the other workers: in batches, each chunk once, in order.

A batch is one append of some chunks, at most every :data:`EVERY_S` or :data:`FULL` bytes, and
less often while no other worker follows. An
append whose reply was lost is sent again: chunks are numbered, and the script says which it
expects. So a flight that Redis forgot, or whose events vanished, is told again from the start.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

import gevent
from gevent.event import Event
from gevent.lock import BoundedSemaphore

from flightsvc.flight.buffer import ChunkWriter
from flightsvc.flight.coordinator import FlightCoordinator, Ownership
from flightsvc.flight.state import Ack
from flightsvc.store import StoreError

log = logging.getLogger(__name__)

#: Least time in seconds between the beginnings of two batches, unless the second is full.
EVERY_S: Final = 0.02
#: The same while no other worker follows: one that joins finds almost everything there already.
ALONE_S: Final = 0.1
#: Bytes that make a batch full.
FULL: Final = 8 * 1024
#: Most bytes and chunks of one batch: where much is told again, others get their turn.
MOST_BYTES: Final = 64 * 1024
MOST_CHUNKS: Final = 500
#: Time in seconds to wait after an append that did not get through.
PAUSE_S: Final = 0.2


class Outbox:
    """The chunks of one call on their way to Redis.

    :param lost: told the answer of an append that says that the flight is no longer ours.
    """

    def __init__(
        self,
        coordinator: FlightCoordinator,
        own: Ownership,
        writer: ChunkWriter,
        lost: Callable[[Ack], None],
    ) -> None:
        self._coordinator = coordinator
        self._own = own
        self._writer = writer
        self._lost = lost
        self._sent = 0
        self._weight = 0
        #: the fence that was lost; nothing is told under it any more
        self._lost_fence = 0
        self._followed = False
        self._sending = BoundedSemaphore()
        self._wanted, self._full = Event(), Event()
        self._greenlet: gevent.Greenlet[..., Any] | None = None

    def add(self, size: int) -> None:
        """There is a chunk more, of so many bytes; never blocks."""
        self._weight += size
        if self._weight >= FULL:
            self._full.set()
        self._wanted.set()
        if self._greenlet is None:
            self._greenlet = gevent.spawn(self._run)

    def resume(self) -> None:
        """The flight was lost, and is ours again: everything is told anew."""
        self._sent = 0
        self._wanted.set()

    def flush(self) -> Ack:
        """Tell what was not told yet, and make sure that all of it is there.

        :returns: OK, or what says that the flight is no longer ours.
        :raises StoreError: if Redis refuses, or does not answer.
        """
        if not self._writer.count:
            return Ack.OK
        with self._sending:
            while True:
                ack = self._append()
                if ack is not Ack.OK or self._sent >= self._writer.count:
                    return ack

    def close(self) -> None:
        """Tell nothing more."""
        if self._greenlet is not None:
            self._greenlet.kill(block=False)

    def _run(self) -> None:
        began = 0.0
        while True:
            self._wanted.wait()
            early = began + (EVERY_S if self._followed else ALONE_S) - time.monotonic()
            if early > 0:
                self._full.wait(early)
            began = time.monotonic()
            self._wanted.clear()
            try:
                self._send()
            except StoreError as error:
                log.debug("chunks did not get through (%s); they are told again", error.kind)
                self._wanted.set()
                gevent.sleep(PAUSE_S)

    def _send(self) -> None:
        with self._sending:
            fence = self._own.fence
            if fence == self._lost_fence or self._sent >= self._writer.count:
                return
            ack = self._append()
        if ack is not Ack.OK:
            self._lost_fence = fence
            if self._own.fence == fence:
                self._lost(ack)
        elif self._sent < self._writer.count:
            self._wanted.set()

    def _append(self) -> Ack:
        """One batch; without a chunk, it only asks what is expected."""
        chunks = self._batch()
        self._full.clear()
        told = self._coordinator.append(self._own, self._sent, chunks)
        if told.ack not in (Ack.OK, Ack.GAP):
            return told.ack
        self._sent, self._followed = told.expected, told.followers > 0
        return Ack.OK

    def _batch(self) -> list[bytes]:
        first = self._sent
        chunks = self._writer.read(first, first + MOST_CHUNKS)
        size = 0
        for number, chunk in enumerate(chunks):
            size += len(chunk)
            if size > MOST_BYTES and number:
                return chunks[:number]
        self._weight = 0
        return chunks
