"""What is used, and what is left."""

from __future__ import annotations

from dashboards.describe import Board, Line, Panel
from dashboards.words import Words
from flightsvc.errors import Overloaded
from flightsvc.metrics import (
    FLIGHT_REPLAY_BYTES,
    FLIGHT_RESULT_BYTES,
    FLIGHT_WAITERS,
    FLIGHTS_IN_FLIGHT,
    GUARD_BULKHEAD,
    GUARD_QUEUE,
    GUARD_REJECTED,
    GUARD_RETRY_BUDGET,
    GUNICORN_METRICS,
    PROCESS_HUB_LAG,
    PROCESS_MEMORY,
)

#: why a call is refused that found no place in its bulkhead
NO_PLACE = Overloaded.default_code.lower()
HTTP_REQUESTS, HTTP_STATUS, HTTP_TIME = GUNICORN_METRICS[:3]


def board(words: Words) -> Board:
    """What is used, and what is left."""
    paths = words.paths
    kept = words.now(FLIGHT_REPLAY_BYTES)
    budget = paths.gauge(GUARD_RETRY_BUDGET)
    model = paths.node(GUARD_RETRY_BUDGET, "model")
    took = words.highest(HTTP_TIME)
    return Board(
        "flightsvc-capacity",
        "flightsvc: capacity",
        (
            Panel(
                "Flights in the air, callers that wait",
                "all workers, at most",
                "MAX_WAITERS is the cap of each worker; above it callers get 503.",
                (
                    Line(words.now(FLIGHT_WAITERS), "callers that wait", "blue"),
                    Line(words.now(FLIGHTS_IN_FLIGHT), "flights", "orange"),
                ),
            ),
            Panel(
                "Bulkheads: calls at once, by stage",
                "places in use, at most",
                "A stage that stays at CONCURRENCY × workers has too few places.",
                (Line(words.now_by(GUARD_BULKHEAD, "stage")),),
                draw="stacked",
            ),
            Panel(
                "Calls that queue for a place, and calls refused",
                "queued; refused per second",
                "Queueing is time that callers wait without a model working for them.",
                (
                    Line(words.now(GUARD_QUEUE), "queued", "yellow"),
                    Line(
                        words.calm(words.rate(GUARD_REJECTED, reason=NO_PLACE)),
                        "refused",
                        "red",
                    ),
                ),
            ),
            Panel(
                "Hub lag, by worker",
                "ms",
                "How long greenlets waited for their turn at worst. Above 100 ms something "
                "blocks the worker, and its heartbeats with it.",
                (Line(words.by_worker(PROCESS_HUB_LAG)),),
            ),
            Panel(
                "Memory, by worker",
                "MB",
                "Resident memory; a line that only rises is a leak.",
                (Line(words.by_worker(PROCESS_MEMORY, 1e-6)),),
            ),
            Panel(
                "Answers kept: own memory, and stored in Redis",
                "kB; kB per second",
                "Own memory is bounded by L1_MAX_BYTES a worker; Redis holds what is stored "
                "for RESULT_TTL_S.",
                (
                    Line(f"scale({kept},0.001)", "own memory", "green"),
                    Line(f"scale({words.rate(FLIGHT_RESULT_BYTES)},0.001)", "stored", "purple"),
                ),
            ),
            Panel(
                "HTTP answers",
                "per second",
                "gunicorn's own count, health probes and all.",
                tuple(
                    Line(
                        words.rate(HTTP_STATUS, status=f"{digit}*"),
                        f"{digit}xx",
                        colour,
                    )
                    for digit, colour in (("2", "green"), ("4", "yellow"), ("5", "red"))
                ),
                draw="stacked",
            ),
            Panel(
                "HTTP: requests and their time, 95 %",
                "per second; s",
                "gunicorn's own numbers; waiting for a shared call is in the time.",
                (
                    Line(words.rate(HTTP_REQUESTS), "requests", "blue"),
                    Line(
                        f"scale({took},0.001)",
                        "95 %, in s",
                        "purple",
                    ),
                ),
            ),
            Panel(
                "Retry budget left, by model",
                "retries, all workers",
                "At 0 failures are no longer retried: the model gets no extra load.",
                (Line(f"groupByNode({budget},{model},'sum')"),),
            ),
        ),
    )
