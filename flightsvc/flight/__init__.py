"""One call a key. Knows Redis only through ``store``, and no HTTP, model or interview."""

from flightsvc.flight.call import FlightContext
from flightsvc.flight.key import FlightKey, hash_text, normalise_answer
from flightsvc.flight.result import FlightResult
from flightsvc.flight.service import SingleFlight
from flightsvc.flight.state import FlightState, FlightView, Role
from flightsvc.flight.stream import Chunk, End, FlightStream, Restart

__all__ = [
    "Chunk",
    "End",
    "FlightContext",
    "FlightKey",
    "FlightResult",
    "FlightState",
    "FlightStream",
    "FlightView",
    "Restart",
    "Role",
    "SingleFlight",
    "hash_text",
    "normalise_answer",
]
