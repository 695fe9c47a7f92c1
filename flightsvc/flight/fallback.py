"""How a stand-in for an answer travels in the event of a failure: its action, then an envelope."""

from __future__ import annotations

from flightsvc.flight.serializer import Envelope, Payload, ResultSerializer


def pack_fallback(action: str, envelope: Envelope) -> bytes:
    """What the event carries."""
    return action.encode() + b"\n" + envelope.blob


def unpack_fallback(packed: bytes, serializer: ResultSerializer) -> tuple[str, Payload]:
    """Action and value.

    :raises UnreadableResult: if it is damaged.
    """
    action, _, blob = packed.partition(b"\n")
    return action.decode(), serializer.unpack(blob)
