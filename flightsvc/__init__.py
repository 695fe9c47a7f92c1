"""One AI call per question, however many ask at once, on however many machines."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from flightsvc._version import __version__

if TYPE_CHECKING:
    from flightsvc.app import FlightSvc
    from flightsvc.errors import FlightSvcError
    from flightsvc.flight import FlightContext, FlightKey, FlightResult, SingleFlight

__all__ = [
    "FlightContext",
    "FlightKey",
    "FlightResult",
    "FlightSvc",
    "FlightSvcError",
    "SingleFlight",
    "__version__",
]

_HOMES = {"FlightSvc": "flightsvc.app", "FlightSvcError": "flightsvc.errors"}


def __getattr__(name: str) -> Any:
    # loaded at the first use: gevent must have patched before sockets are imported, and the
    # library is useful without Flask
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "flightsvc.flight")), name)
