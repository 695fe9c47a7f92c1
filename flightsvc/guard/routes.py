"""The ways to an answer: the primary route, and what may be asked once where it failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from flightsvc.checklist import Code

T = TypeVar("T")


class Target(NamedTuple):
    """What a breaker stands before. Make it from configured names, never from a request's text."""

    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class Route(Generic[T]):
    """One way to ask.

    :param attempt: makes *one* model call; gets the seconds that it may take.
    """

    target: Target
    attempt: Callable[[float], T]


def no_route(_code: Code) -> None:
    """There is no other way."""
    return


@dataclass(frozen=True, slots=True)
class Routes(Generic[T]):
    """All ways of one call.

    :param primary: is asked first, and again as the checklist says.
    :param instead: the route to ask once where the primary one failed with this code; None: none.
    """

    primary: Route[T]
    instead: Callable[[Code], Route[T] | None] = no_route
