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
    :param help: what it says; and, behind a semicolon, which decision it serves.
    """

    name: str
    kind: Kind
    unit: str
    help: str
    #: the labels in the order of the name
    labels: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(_PLACEHOLDER.findall(self.name)))

    @property
    def meaning(self) -> str:
        """What it says."""
        return self.help.rpartition("; ")[0]

    @property
    def decision(self) -> str:
        """Which decision it serves."""
        return self.help.rpartition("; ")[2].rstrip(".")


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
FLIGHT_SAVED = Metric(
    "flight.saved.{stage}",
    "counter",
    "calls",
    "Answers for which no call was made (follower, replay, l1); whether sharing is worth it.",
)
FLIGHT_SAVED_MONEY = Metric(
    "flight.saved_money.{stage}",
    "counter",
    "millionths",
    "The same at the stage's `call_price`, in millionths of its currency; what sharing is worth.",
)
FLIGHT_STAND_INS = Metric(
    "flight.stand_ins.{stage}.{action}",
    "counter",
    "answers",
    "Answers in which something stood in for the model's, by fallback; whether users notice.",
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
    "What each acquire was told (owner_new, owner_takeover, …); whether takeovers happen.",
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
    "How owned flights ended (stored, failed, released, not_stored, abandoned, lost); whether "
    "calls were in vain.",
)
FLIGHT_LOST = Metric(
    "flight.lost.{stage}.{reason}",
    "counter",
    "flights",
    "Owners that lost their flight: stale (another took over) or lost (Redis forgot it); whether "
    "workers stall, or Redis drops data.",
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
    "From the start of the guarded call to its end, queueing and retries included; whether budgets "
    "fit.",
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
    "Flights that this worker runs now; whether work is spread evenly, and when it is drained.",
)
FLIGHT_WAITERS = Metric(
    "flight.waiters",
    "gauge",
    "callers",
    "Callers that wait in this worker now; how near the cap is.",
)
FLIGHT_REPLAY_BYTES = Metric(
    "flight.replay_bytes",
    "gauge",
    "bytes",
    "What this worker's own replays hold; whether L1_MAX_BYTES is the right size.",
)
COORDINATION_UP = Metric(
    "coordination.up",
    "gauge",
    "0 or 1",
    "1 while Redis coordinates this worker's flights, 0 while it does without; whether to look "
    "after Redis.",
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
    "Single attempts at a model call, by outcome; whether the model is in trouble.",
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
    "Places of the stage's bulkhead in use now; whether there are enough.",
)
GUARD_QUEUE = Metric(
    "guard.queue.{stage}",
    "gauge",
    "calls",
    "Calls that queue for a place now; whether callers wait for places, not for the model.",
)
GUARD_BREAKER = Metric(
    "guard.breaker.{provider}.{model}",
    "gauge",
    "0, 1 or 2",
    "State of the breaker (0 closed, 1 half-open, 2 open); whether a model is cut off now.",
)
GUARD_RETRY_BUDGET = Metric(
    "guard.retry_budget.{provider}.{model}",
    "gauge",
    "retries",
    "Retries that this worker may still send the model now; whether the budget runs dry.",
)
GUARD_SPENT_MONEY = Metric(
    "guard.spent_money.{stage}",
    "counter",
    "millionths",
    "Attempts at the stage's `call_price`, in millionths of its currency; what the model costs.",
)
PROVIDER_TIME = Metric(
    "provider.time.{provider}.{model}",
    "timer",
    "ms",
    "One request to the model, from sending it to its whole answer; whether the model is slow.",
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
    "HTTP answers, by route and status; what clients see.",
)
RECORDS_WRITES = Metric(
    "records.writes.{kind}.{outcome}",
    "counter",
    "rows",
    "Answers handed to the records: written, or stale (a newer owner's row stands); whether rows "
    "keep up with answers.",
)
RECORDS_ERRORS = Metric(
    "records.errors.{kind}",
    "counter",
    "errors",
    "Rows not kept or not read (unreachable, busy, refused, rejected); whether answers are lost.",
)
RECORDS_TIME = Metric(
    "records.time.{verb}",
    "timer",
    "ms",
    "One use of the database, by verb; whether it holds up answers.",
)
FILE_READS = Metric(
    "files.reads.{task}.{outcome}",
    "counter",
    "files",
    "Files read (pdf, image), by outcome: ok, or the code of the refusal; what users send.",
)
FILE_READ_TIME = Metric(
    "files.read_time.{task}",
    "timer",
    "ms",
    "Reading one file, queueing included; whether more may be read at once.",
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
PROCESS_HUB_LAG = Metric(
    "process.hub_lag",
    "gauge",
    "ms",
    "Longest time that this worker's greenlets waited for their turn; whether something blocks it.",
)
PROCESS_MEMORY = Metric(
    "process.memory",
    "gauge",
    "bytes",
    "Memory that this worker holds (resident); whether it grows, and what a machine can bear.",
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
    "Calls of this very interface with wrong labels, kind or value; whether it is used wrongly.",
)

#: all of the above
METRICS: tuple[Metric, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Metric)
)

#: gunicorn's own, sent beside them under the same prefix; its gauge has no worker's number
GUNICORN_METRICS: tuple[Metric, ...] = (
    Metric(
        "gunicorn.requests",
        "counter",
        "requests",
        "Requests answered, of all routes; how much HTTP load arrives.",
    ),
    Metric(
        "gunicorn.request.status.{status}",
        "counter",
        "requests",
        "The same, by HTTP status; what clients see, also where there is no route.",
    ),
    Metric(
        "gunicorn.request.duration",
        "timer",
        "ms",
        "From a request's head to the end of its answer; how long clients wait.",
    ),
    Metric(
        "gunicorn.workers",
        "gauge",
        "workers",
        "Worker processes that the master keeps; whether all of them run.",
    ),
    Metric(
        "gunicorn.log.{level}",
        "counter",
        "lines",
        "Lines that gunicorn logged (warning, error, critical, exception); whether workers die.",
    ),
)
