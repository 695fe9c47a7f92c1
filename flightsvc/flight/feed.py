"""What a follower has read of the chunks of another worker's owner."""

from __future__ import annotations

from flightsvc.flight.buffer import ChunkBuffer
from flightsvc.flight.coordinator import Following
from flightsvc.flight.reader import FlightEvent, after


class ChunkFeed:
    """Writes an owner's chunks into the flight's buffer; kept while the follower asks again."""

    def __init__(self, buffer: ChunkBuffer, following: Following) -> None:
        self._buffer = buffer
        self._writer = buffer.begin(following.fence)
        self._fence = following.fence
        self._events_from = following.events_from
        #: the event after which to read on
        self.cursor = _start(following)

    @classmethod
    def resumed(
        cls, feed: ChunkFeed | None, buffer: ChunkBuffer, following: Following
    ) -> ChunkFeed:
        """The feed of an ownership: the one that is there, if it is that ownership's."""
        if feed is None or not feed._goes_on(following):
            return cls(buffer, following)
        if after(feed.cursor, following.last_event):
            feed.cursor = _start(following)  # the events were made anew
        return feed

    def take(self, event: FlightEvent) -> bool:
        """Read an event.

        :returns: False if chunks before it were missed: begin at :attr:`cursor` again.
        """
        if event.fence < self._fence:
            return True
        if event.fence > self._fence:
            self._writer = self._buffer.begin(event.fence)
            self._fence, self._events_from = event.fence, event.entry
        if event.kind == "chunk":
            number, data = int(event.fields[b"seq"]), event.fields[b"data"]
            if not self._writer.put(number, data):
                self.cursor = "0-0"
                return False
        elif event.kind == "succeeded" and int(event.fields.get(b"chunks", 0)) == self._count:
            self._writer.close(event.fence)
        self.cursor = event.entry
        return True

    def misses_the_end_of(self, fence: int) -> bool:
        """Whether it has chunks of an answer, and not all of them."""
        return bool(self._count) and self._fence == fence and self._buffer.whole != fence

    @property
    def _count(self) -> int:
        return self._writer.count

    def _goes_on(self, following: Following) -> bool:
        same = (following.fence, following.events_from) == (self._fence, self._events_from)
        return same and self._buffer.is_written_by(self._writer)


def _start(following: Following) -> str:
    """Where an ownership's events begin; lower than that if they were made anew."""
    lower = after(following.events_from, following.last_event)
    return "0-0" if lower else following.events_from
