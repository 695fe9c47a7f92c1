"""One AI call per question, however many ask at once, on however many machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flightsvc._version import __version__
from flightsvc.errors import FlightSvcError
from flightsvc.flight import FlightContext, FlightKey, FlightResult, SingleFlight

if TYPE_CHECKING:
    from flightsvc.app import FlightSvc

__all__ = [
    "FlightContext",
    "FlightKey",
    "FlightResult",
    "FlightSvc",
    "FlightSvcError",
    "SingleFlight",
    "__version__",
]


def __getattr__(name: str) -> Any:
    # the library is useful without Flask loaded: only the extension brings it in
    if name == "FlightSvc":
        from flightsvc.app import FlightSvc

        return FlightSvc
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
