"""What sharing saves: calls, model time's price, and where."""

from __future__ import annotations

from dashboards.describe import ROLES, Board, Line, Panel
from dashboards.words import Words
from flightsvc.metrics import (
    FLIGHT_ANSWERS,
    FLIGHT_CALLERS,
    FLIGHT_CALLS,
    FLIGHT_SAVED,
    FLIGHT_SAVED_MONEY,
    GUARD_SPENT_MONEY,
)


def board(words: Words) -> Board:
    """What sharing saves."""
    return Board(
        "flightsvc-savings",
        "flightsvc: savings",
        (
            Panel(
                "Answers asked for, calls made, calls saved",
                "per second",
                "Asked is what callers wanted, made what the model was asked. In between is "
                "what sharing saved.",
                (
                    Line(words.rate(FLIGHT_CALLERS), "asked", "blue"),
                    Line(words.rate(FLIGHT_SAVED), "saved", "green"),
                    Line(words.rate(FLIGHT_CALLS), "made", "orange"),
                ),
            ),
            Panel(
                "Share of answers that needed no call",
                "%",
                "Near 0 %: nobody asks twice, or keys differ where questions do not.",
                (
                    Line(
                        f"asPercent({words.rate(FLIGHT_SAVED)},{words.rate(FLIGHT_ANSWERS)})",
                        "saved",
                        "green",
                    ),
                ),
                highest=100,
            ),
            Panel(
                "Money, over the time shown",
                "in the currency of call_price",
                "Saved calls and attempts made, at the stages' call_price; 0 where that is not "
                "set.",
                (
                    Line(words.money(FLIGHT_SAVED_MONEY), "saved", "green"),
                    Line(words.money(GUARD_SPENT_MONEY), "spent", "orange"),
                ),
            ),
            Panel(
                "How answers came about",
                "per second",
                "owner: from the call made for it. follower: from a call that ran already. "
                "replay: from Redis. l1: from the worker's own memory.",
                tuple(
                    Line(words.rate(FLIGHT_ANSWERS, role=role), role, colour)
                    for role, colour in ROLES
                ),
                draw="stacked",
            ),
            Panel(
                "Calls saved, by stage",
                "per second",
                "Where sharing is worth most.",
                (Line(words.by(FLIGHT_SAVED, "stage")),),
                draw="stacked",
            ),
            Panel(
                "Calls made, by stage",
                "per second",
                "Where the model's load comes from.",
                (Line(words.by(FLIGHT_CALLS, "stage")),),
                draw="stacked",
            ),
        ),
    )
