"""One question of the interview, as the invoker handles all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flightsvc.providers.base import Provider

#: asks a model once; gets the seconds that it may take
Ask = Callable[[Provider, float], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, whoever answers.

    :param stage: the kind of question.
    :param place: where in the tenant's sessions it stands: tenant, stage, session and what was
        asked there; an older answer from there may serve.
    :param ask: asks a model once.
    :param shorter: the same with its input cut to so many tokens, marked by the second argument;
        None if it is no longer than that.
    """

    stage: str
    place: tuple[str, ...]
    ask: Ask
    shorter: Callable[[int, str], Ask | None] = lambda _most, _marker: None
