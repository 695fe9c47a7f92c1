"""The chunks of a streaming flight: one list a flight and worker, whoever reads it.

Callers are cursors into the list: what one has not read yet costs nothing, and holds nobody
up. Whoever makes the chunks, this worker's own call or another worker's owner, is the list's
writer. A new writer begins again from the first chunk: as long as it says what the list holds
already, nobody notices; where it says something else, the list goes on with the new text, and
a cursor that was past that place begins again.
"""

from __future__ import annotations

from flightsvc.flight.clock import DeadlineClock
from flightsvc.flight.waiting import Waiters


class ChunkBuffer:
    """What the callers of a flight in this worker can read."""

    def __init__(self) -> None:
        #: the chunks that are valid now
        self.chunks: list[bytes] = []
        #: fence of the writer that writes, or wrote last; 0 without Redis
        self.fence = 0
        #: fence of the answer that the chunks are the whole of; None while they are not
        self.whole: int | None = None
        #: how often chunks became void
        self.cuts = 0
        #: for each of these times: how many chunks before them did not
        self._kept: list[int] = []
        self._writer: ChunkWriter | None = None
        self._readers = Waiters()

    def begin(self, fence: int) -> ChunkWriter:
        """A writer, from the first chunk on; what the one before it may still say is ignored."""
        self._writer = writer = ChunkWriter(self)
        self.fence, self.whole = fence, None
        return writer

    def settle(self, fence: int | None) -> None:
        """The flight has an answer: chunks that are not its chunks are void.

        :param fence: of the answer; None if it stands in for one.
        """
        if self.chunks and (fence is None or self.whole != fence):
            self.cut(0)
        self._writer = None

    def cut(self, length: int) -> None:
        """Only the first chunks are still valid."""
        self._kept.append(length)
        self.cuts += 1
        # a new list: a cursor may be in the middle of reading
        self.chunks = self.chunks[:length]
        self.wake()

    def wake(self) -> None:
        """There is news for those who wait."""
        self._readers.wake()

    def wait(self, clock: DeadlineClock, deadline: float) -> bool:
        """Wait for news; whether it came before a time of ``time.monotonic()``."""
        return self._readers.wait(clock, deadline)

    def is_written_by(self, writer: ChunkWriter) -> bool:
        """Whether a writer is the current one."""
        return self._writer is writer

    def void_since(self, cuts: int) -> int | None:
        """How many chunks outlived all cuts since the first so many; None if there was no other."""
        return min(self._kept[cuts:], default=None)


class ChunkWriter:
    """Writes a flight's chunks from the first one on."""

    __slots__ = ("_buffer", "_chunks", "_closed", "count")

    def __init__(self, buffer: ChunkBuffer) -> None:
        self._buffer = buffer
        self._closed = False
        #: begins with what was written, whatever becomes of the buffer
        self._chunks = buffer.chunks
        #: chunks written
        self.count = 0

    def put(self, number: int, chunk: bytes) -> bool:
        """Write a chunk; one that is there already may be written again.

        :param number: of the chunk, from 0.
        :returns: False if chunks before it are missing; then nothing was written.
        """
        buffer = self._buffer
        if number > self.count:
            return False
        if self._closed or not buffer.is_written_by(self):
            return True
        held = buffer.chunks
        if number < len(held) and held[number] != chunk:
            buffer.cut(number)
            held = self._chunks = buffer.chunks
        if number == len(held):
            held.append(chunk)
            buffer.wake()
        self.count = max(self.count, number + 1)
        return True

    def read(self, start: int, stop: int) -> list[bytes]:
        """Chunks that were written."""
        return self._chunks[start : min(stop, self.count)]

    def close(self, fence: int) -> None:
        """What was written is a whole answer; nothing is written after it.

        :param fence: of that answer.
        """
        self._closed = True
        buffer = self._buffer
        if buffer.is_written_by(self):
            if self.count < len(buffer.chunks):
                buffer.cut(self.count)
            buffer.whole = buffer.fence = fence


class Cursor:
    """One caller's place in a buffer."""

    __slots__ = ("_at", "_buffer", "_cuts")

    def __init__(self, buffer: ChunkBuffer) -> None:
        self._buffer = buffer
        self._at = 0
        self._cuts = buffer.cuts

    def voided(self) -> bool:
        """Whether chunks that were taken are void; then the next one is the first again."""
        buffer = self._buffer
        if self._cuts == buffer.cuts:
            return False
        kept = buffer.void_since(self._cuts)
        self._cuts = buffer.cuts
        if kept is None or self._at <= kept:
            return False
        self._at = 0
        return True

    def take(self) -> bytes | None:
        """The next chunk, or None if there is none yet."""
        chunks = self._buffer.chunks
        if self._at >= len(chunks):
            return None
        chunk = chunks[self._at]
        self._at += 1
        return chunk
