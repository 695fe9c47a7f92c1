"""An owner's writes: how each is sent by a worker, and which rule of the model it stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from flightsvc.flight.coordinator import FlightCoordinator, Ownership
from flightsvc.flight.serializer import Envelope
from flightsvc.flight.state import Failure
from tests.proof.model import Model
from tests.proof.world import Error

#: codec and size of every stored answer
PACKED = ("none+raw", 6)


@dataclass(frozen=True)
class Owned:
    """An ownership that was granted once."""

    flight: int
    token: str
    fence: int

    def twisted(self, how: str) -> Owned:
        """The same, as somebody else might send it."""
        if how == "token":
            return replace(self, token="nobody")
        off = {"fence up": 1, "fence down": -1}.get(how, 0)
        return replace(self, fence=self.fence + off)


@dataclass(frozen=True)
class Write:
    """One write, ready to be sent.

    :param checksum: of the answer, where it is one.
    """

    verb: str
    own: Owned
    real: Callable[[FlightCoordinator, Ownership], Any]
    model: Callable[[], Any]
    checksum: str = ""


def blob_of(checksum: str) -> bytes:
    """The stored bytes that go with a checksum."""
    return b"envelope " + checksum.encode()


def write(model: Model, own: Owned, verb: str, *args: Any) -> Write:
    """A write by its name."""
    made: Write = _MAKE[verb](model, own, *args)
    return made


def _mark_running(model: Model, own: Owned) -> Write:
    def expected() -> str:
        return model.mark_running(own.flight, own.token, own.fence)

    return Write("mark_running", own, lambda worker, o: worker.mark_running(o), expected)


def _release(model: Model, own: Owned) -> Write:
    def expected() -> str:
        return model.release(own.flight, own.token, own.fence)

    return Write("release", own, lambda worker, o: worker.release(o), expected)


def _abandon(model: Model, own: Owned) -> Write:
    def expected() -> str:
        return model.abandon(own.flight, own.token, own.fence)

    return Write("abandon", own, lambda worker, o: worker.abandon(o), expected)


def _finish(model: Model, own: Owned, checksum: str) -> Write:
    envelope = Envelope(blob_of(checksum), *PACKED, checksum)

    def expected() -> str:
        return model.finish(own.flight, own.token, own.fence, envelope.blob, checksum)

    return Write("finish", own, lambda worker, o: worker.finish(o, envelope), expected, checksum)


def _fail(model: Model, own: Owned, failure: Failure) -> Write:
    kind, wait = failure.error_type.value, failure.retry_after_ms
    error = Error(kind, failure.code, failure.retryable, failure.status, wait)

    def expected() -> str:
        return model.fail(own.flight, own.token, own.fence, error)

    return Write("fail", own, lambda worker, o: worker.fail(o, failure), expected)


def _append(model: Model, own: Owned, ahead: int, count: int) -> Write:
    """Chunks from the expected number on, or one beside it."""
    meta = model.flights[own.flight].meta
    first = max(0, (meta.seq if meta else 0) + ahead)
    chunks = [f"chunk {first + n}".encode() for n in range(count)]

    def expected() -> Any:
        return model.append(own.flight, own.token, own.fence, first, chunks)

    return Write("append", own, lambda worker, o: worker.append(o, first, chunks), expected)


_MAKE: dict[str, Callable[..., Write]] = {
    "mark_running": _mark_running,
    "release": _release,
    "abandon": _abandon,
    "finish": _finish,
    "fail": _fail,
    "append": _append,
}
