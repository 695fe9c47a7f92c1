"""Flights whose calls ask for flights: who runs inside of whom, and circles that never end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gevent import getcurrent

from flightsvc.errors import NestedFlight

if TYPE_CHECKING:
    from flightsvc.flight.local import LocalFlight

_INSIDE = "flightsvc.inside"


def inside() -> tuple[LocalFlight, ...]:
    """The flights whose calls the current code runs inside of, outermost first.

    Greenlets that a call spawns belong to it: gevent hands the tree's locals down to them.
    """
    tree: dict[str, Any] = getattr(getcurrent(), "spawn_tree_locals", None) or {}
    callers: tuple[LocalFlight, ...] = tree.get(_INSIDE, ())
    return callers


def enter(flight: LocalFlight) -> None:
    """From here on, the current greenlet runs inside of a flight's call."""
    here: Any = getcurrent()
    here.spawn_tree_locals = {_INSIDE: flight.inside}


def refuse_circle(flight: LocalFlight) -> None:
    """Refuse to wait, from inside a call, for a flight that waits for that call.

    :raises NestedFlight: if it does.
    """
    callers = inside()
    if not callers:
        return
    seen, reach = set(), [flight]
    while reach:
        here = reach.pop()
        if here in callers:
            raise NestedFlight()
        if here not in seen:
            seen.add(here)
            reach.extend(here.waits_for)
