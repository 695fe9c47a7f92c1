"""What an owner does, step by step, where a test is the owner."""

from __future__ import annotations

from flightsvc.flight import FlightKey
from flightsvc.flight.coordinator import Ask, FlightCoordinator, Ownership
from flightsvc.flight.state import Ack

KEY = FlightKey("scoring", "s1", "an answer")


def own(owner: FlightCoordinator) -> Ownership:
    granted = owner.acquire_or_join(Ask(KEY, "the owner's token"))
    assert isinstance(granted, Ownership)
    return granted


def beat(owner: FlightCoordinator, owned: Ownership) -> int:
    """Beat once; how many workers follow."""
    [(ack, followers)] = owner.beat(int(KEY.flight_id, 16) % 16, [owned])
    assert ack is Ack.OK
    return followers
