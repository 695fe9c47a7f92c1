"""Whether all is well: failures, the model, takeovers, Redis."""

from __future__ import annotations

from dashboards.describe import ROLES, Board, Line, Panel
from dashboards.words import Words
from flightsvc.flight.state import Action
from flightsvc.metrics import (
    COORDINATION_UP,
    FLIGHT_ACTIONS,
    FLIGHT_ERRORS,
    FLIGHT_FALLBACKS,
    FLIGHT_LATENESS,
    FLIGHT_LEFT,
    FLIGHT_LOST,
    FLIGHT_STAND_INS,
    GUARD_BREAKER,
    GUARD_HELD,
    GUARD_REJECTED,
    GUARD_RETRIES,
    PROVIDER_ERRORS,
    PROVIDER_TIME,
    REDIS_ERRORS,
    REDIS_TIME,
)

#: what an acquire is told that replaces a dead owner
TAKEOVER = Action.OWNER_TAKEOVER.value.lower()


def board(words: Words) -> Board:
    """Whether all is well."""
    up = words.paths.gauge(COORDINATION_UP)
    breaker = words.paths.gauge(GUARD_BREAKER)
    slow = words.highest(PROVIDER_TIME, "upper_95")
    usual = words.highest(PROVIDER_TIME, "upper_50")
    model = words.paths.node(GUARD_BREAKER, "model")
    return Board(
        "flightsvc-health",
        "flightsvc: health",
        (
            Panel(
                "Errors that callers got, by code",
                "per second",
                "What to repair first; docs/checklist.md says what each code means.",
                (Line(words.by(FLIGHT_ERRORS, "code")),),
                draw="stacked",
            ),
            Panel(
                "Failed requests to the model, by code",
                "per second",
                "The model's own failures; retries and stand-ins hide many from callers.",
                (Line(words.by(PROVIDER_ERRORS, "code")),),
                draw="stacked",
            ),
            Panel(
                "Breakers: 0 closed, 1 half-open, 2 open",
                "state",
                "2: the model is cut off, and calls are refused at once.",
                (Line(f'groupByNode(keepLastValue({breaker}),{model},"max")'),),
                draw="steps",
                highest=2.2,
            ),
            Panel(
                "Lateness: from the model's answer to the caller's, 95 %",
                "ms",
                "What coordination costs. A few ms; more says that Redis, or the worker, is "
                "slow.",
                tuple(
                    Line(words.highest(FLIGHT_LATENESS, role=role), role, colour)
                    for role, colour in ROLES
                    if role in ("owner", "follower")
                ),
            ),
            Panel(
                "Model time",
                "s",
                "One request to the model, from sending it to its whole answer.",
                (
                    Line(f"scale({slow},0.001)", "95 %", "purple"),
                    Line(f"scale({usual},0.001)", "median", "blue"),
                ),
            ),
            Panel(
                "Takeovers and lost flights",
                "in the window",
                "A takeover: an owner died or stalled, or a failed call is made anew. Without "
                "Redis: workers no longer share flights with each other.",
                (
                    Line(words.sum(FLIGHT_ACTIONS, action=TAKEOVER), "takeovers", "red"),
                    Line(words.sum(FLIGHT_LOST), "lost", "purple"),
                    Line(words.sum(FLIGHT_FALLBACKS), "without Redis", "orange"),
                    Line(words.sum(FLIGHT_LEFT), "callers that left", "grey"),
                ),
            ),
            Panel(
                "Retries and stand-ins",
                "per second",
                "Held back: retries not made, for the model's health or the retry budget.",
                (
                    Line(words.calm(words.rate(GUARD_RETRIES)), "retries", "blue"),
                    Line(words.calm(words.rate(GUARD_HELD)), "retries held back", "orange"),
                    Line(words.calm(words.rate(GUARD_REJECTED)), "calls refused", "red"),
                    Line(words.calm(words.rate(FLIGHT_STAND_INS)), "stand-ins given", "purple"),
                ),
            ),
            Panel(
                "Redis: round trips of the slowest verbs, 95 %",
                "ms",
                "More than a few ms: Redis or the network is slow, or the worker is busy.",
                (Line(f"highestAverage({words.highest_by(REDIS_TIME, 'verb')},4)"),),
            ),
            Panel(
                "Redis: coordination and errors",
                "share; per second",
                "Coordinated: the share of workers whose flights Redis holds together.",
                (
                    Line(f"averageSeries(keepLastValue({up}))", "coordinated", "green"),
                    Line(words.calm(words.rate(REDIS_ERRORS)), "errors", "red"),
                ),
            ),
        ),
    )
