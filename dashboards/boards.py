"""The dashboards, in the order in which they are read."""

from __future__ import annotations

from dashboards import capacity, health, savings
from dashboards.describe import Board
from dashboards.words import Words


def boards(prefix: str = "flightsvc", window: str = "1min") -> tuple[Board, ...]:
    """All of them.

    :param prefix: and ``window``: see :class:`Words`.
    """
    words = Words(prefix, window)
    return savings.board(words), health.board(words), capacity.board(words)
