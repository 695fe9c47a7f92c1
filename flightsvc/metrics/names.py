"""Every metric of flightsvc, in one place.

``{label}`` in a name is filled from the keyword arguments of the call. Unknown models share one
name, and a label never brings more than a bounded number of names (see ``series.py``).

What the counters say together (a test adds them up after a run), a stage:

- ``answers`` of all roles + ``errors`` of all codes + ``left`` = ``callers``
- ``ends`` of all outcomes = flights that this worker owned
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["counter", "timer", "gauge"]

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One metric.

    :param name: dotted name without the prefix; ``{label}`` placeholders.
    :param kind: ``counter``, ``timer`` (given in seconds, sent in ms) or ``gauge``.
    :param unit: what one unit of the value is.
    :param help: what it says and which decision it serves.
    """

    name: str
    kind: Kind
    unit: str
    help: str
    #: the labels in the order of the name
    labels: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(_PLACEHOLDER.findall(self.name)))


FLIGHT_CALLERS = Metric(
    "flight.callers.{stage}",
    "counter",
    "callers",
    "Callers that asked for an answer; how much load arrives.",
)
FLIGHT_ANSWERS = Metric(
    "flight.answers.{stage}.{role}",
    "counter",
    "answers",
    "Answers given, by role (owner, follower, replay, l1, local); how many calls are saved.",
)
FLIGHT_ERRORS = Metric(
    "flight.errors.{stage}.{code}",
    "counter",
    "errors",
    "Callers that got an error instead, by code; what to repair first.",
)
FLIGHT_LEFT = Metric(
    "flight.left.{stage}",
    "counter",
    "callers",
    "Callers that went away before their answer; whether the model is too slow for them.",
)
FLIGHT_ACTIONS = Metric(
    "flight.actions.{stage}.{action}",
    "counter",
    "acquires",
    "What each acquire was told (OWNER_NEW, FOLLOWER_WAIT, …); whether takeovers happen.",
)
FLIGHT_CALLS = Metric(
    "flight.calls.{stage}",
    "counter",
    "calls",
    "Guarded model calls made; what the model costs.",
)
FLIGHT_ENDS = Metric(
    "flight.ends.{stage}.{outcome}",
    "counter",
    "flights",
    "How owned flights ended (stored, failed, released, not_stored, abandoned, lost).",
)
FLIGHT_LOST = Metric(
    "flight.lost.{stage}.{reason}",
    "counter",
    "flights",
    "Owners that lost their flight: stale (another took over) or lost (Redis forgot it).",
)
FLIGHT_FALLBACKS = Metric(
    "flight.fallbacks.{stage}",
    "counter",
    "flights",
    "Flights that ran without Redis; whether duplicates across workers are possible.",
)
FLIGHT_LOCKS = Metric(
    "flight.locks.{stage}.{outcome}",
    "counter",
    "locks",
    "Session locks held, busy until the caller gave up, or lost; whether sessions collide.",
)
FLIGHT_CALL_TIME = Metric(
    "flight.call_time.{stage}",
    "timer",
    "ms",
    "From the start of the guarded call to its end, queueing and retries included.",
)
FLIGHT_LATENESS = Metric(
    "flight.lateness.{stage}.{role}",
    "timer",
    "ms",
    "From the model's answer to the caller's; what coordination costs.",
)
FLIGHT_RESULT_BYTES = Metric(
    "flight.result_bytes.{stage}",
    "counter",
    "bytes",
    "Bytes of the results stored in Redis, as stored; how fast its memory fills.",
)
FLIGHTS_IN_FLIGHT = Metric(
    "flight.in_flight",
    "gauge",
    "flights",
    "Flights that this worker runs now.",
)
FLIGHT_WAITERS = Metric(
    "flight.waiters",
    "gauge",
    "callers",
    "Callers that wait in this worker now; how near the cap is.",
)
COORDINATION_UP = Metric(
    "coordination.up",
    "gauge",
    "0 or 1",
    "1 while Redis coordinates this worker's flights, 0 while it does without.",
)
REDIS_TIME = Metric(
    "redis.time.{verb}",
    "timer",
    "ms",
    "Round trip of a flight script, by verb; whether Redis or the network is slow.",
)
REDIS_ERRORS = Metric(
    "redis.errors.{kind}",
    "counter",
    "errors",
    "Failed commands, by kind; why coordination is degraded.",
)
GUARD_ATTEMPTS = Metric(
    "guard.attempts.{stage}.{outcome}",
    "counter",
    "attempts",
    "Single attempts at a model call, by outcome.",
)
GUARD_RETRIES = Metric(
    "guard.retries.{stage}",
    "counter",
    "retries",
    "Attempts after the first; how much of the model's load is repetition.",
)
GUARD_HELD = Metric(
    "guard.held.{stage}.{reason}",
    "counter",
    "calls",
    "Retries not made for health's or the retry budget's sake; whether a model is in trouble.",
)
GUARD_REJECTED = Metric(
    "guard.rejected.{stage}.{reason}",
    "counter",
    "calls",
    "Calls refused before any attempt, by reason; whether limits are too tight.",
)
GUARD_BULKHEAD = Metric(
    "guard.bulkhead.{stage}",
    "gauge",
    "calls",
    "Places of the stage's bulkhead in use now.",
)
GUARD_QUEUE = Metric(
    "guard.queue.{stage}",
    "gauge",
    "calls",
    "Calls that queue for a place now.",
)
GUARD_BREAKER = Metric(
    "guard.breaker.{provider}.{model}",
    "gauge",
    "0, 1 or 2",
    "State of the breaker: 0 closed, 1 half-open, 2 open.",
)
PROVIDER_TIME = Metric(
    "provider.time.{provider}.{model}",
    "timer",
    "ms",
    "One request to the model, from sending it to its whole answer.",
)
PROVIDER_ERRORS = Metric(
    "provider.errors.{provider}.{model}.{code}",
    "counter",
    "errors",
    "Failed requests to the model, by code; whom to call.",
)
HTTP_ANSWERS = Metric(
    "http.answers.{route}.{status}",
    "counter",
    "answers",
    "HTTP answers, by route and status.",
)
SHARED_AGE = Metric(
    "shared.age",
    "gauge",
    "s",
    "Age of what this worker knows of switches and breaker hints; whether a pause would be seen.",
)
SHARED_EVENTS = Metric(
    "shared.events.{kind}",
    "counter",
    "events",
    "State changes written to the stream, by kind; how much other services have to follow.",
)
SHARED_DROPPED = Metric(
    "shared.dropped.{kind}",
    "counter",
    "items",
    "Events and counts that never reached the other workers; what they do not know.",
)
ALERTS_SENT = Metric(
    "alerts.sent.{channel}",
    "counter",
    "alerts",
    "Alerts that a channel took; how often somebody is woken.",
)
ALERTS_FAILED = Metric(
    "alerts.failed.{channel}",
    "counter",
    "alerts",
    "Alerts that a channel did not take, however often it was tried; whether it is dead.",
)
ALERTS_DROPPED = Metric(
    "alerts.dropped",
    "counter",
    "alerts",
    "Alerts for which a channel's queue had no place; whether too many are sent.",
)
METRICS_MISUSED = Metric(
    "metrics.misused",
    "counter",
    "calls",
    "Calls of this very interface with wrong labels, kind or value; a fault in the program.",
)

#: all of the above
METRICS: tuple[Metric, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Metric)
)
