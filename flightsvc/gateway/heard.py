"""What callers have been given, kept once for all callers of a flight in this worker."""

from __future__ import annotations

from weakref import WeakValueDictionary


class Heard:
    """The chunks of one answer, as far as any caller here has them."""

    __slots__ = ("__weakref__", "chunks")

    def __init__(self) -> None:
        self.chunks: list[bytes] = []


class Memory:
    """The answers that callers of this worker are being given."""

    def __init__(self) -> None:
        self._heard: WeakValueDictionary[str, Heard] = WeakValueDictionary()

    def place(self, flight_id: str) -> Place:
        """The place of a new caller, at the beginning."""
        heard = self._heard.get(flight_id)
        if heard is None:
            heard = self._heard[flight_id] = Heard()
        return Place(heard)


class Place:
    """How far one caller has come: a number, whatever the answer's length."""

    __slots__ = ("_heard", "count")

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        #: chunks that the caller has
        self.count = 0

    def given(self, chunk: bytes) -> None:
        """The caller has one chunk more."""
        chunks = self._heard.chunks
        if self.count == len(chunks):
            chunks.append(chunk)
        elif chunks[self.count] != chunk:  # the flight began anew meanwhile
            heard = Heard()
            heard.chunks = [*chunks[: self.count], chunk]
            self._heard = heard
        self.count += 1

    @property
    def chunks(self) -> list[bytes]:
        """All that the caller has."""
        return self._heard.chunks[: self.count]
