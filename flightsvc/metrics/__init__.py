"""Metrics: their names, where values gather, and how they reach StatsD.

``names.py`` lists every metric; :class:`Metrics` counts. Everything is importable from here::

    from flightsvc.metrics import FLIGHT_CALLERS, Metrics

    metrics = Metrics.off()
    metrics.count(FLIGHT_CALLERS, stage="evaluation")
"""

from flightsvc.metrics.names import (
    COORDINATION_UP,
    FLIGHT_ACTIONS,
    FLIGHT_ANSWERS,
    FLIGHT_CALL_TIME,
    FLIGHT_CALLERS,
    FLIGHT_CALLS,
    FLIGHT_ENDS,
    FLIGHT_ERRORS,
    FLIGHT_FALLBACKS,
    FLIGHT_LATENESS,
    FLIGHT_LEFT,
    FLIGHT_LOCKS,
    FLIGHT_LOST,
    FLIGHT_RESULT_BYTES,
    FLIGHT_WAITERS,
    FLIGHTS_IN_FLIGHT,
    GUARD_ATTEMPTS,
    GUARD_BREAKER,
    GUARD_BULKHEAD,
    GUARD_QUEUE,
    GUARD_REJECTED,
    GUARD_RETRIES,
    HTTP_ANSWERS,
    METRICS,
    METRICS_MISUSED,
    PROVIDER_ERRORS,
    PROVIDER_TIME,
    REDIS_ERRORS,
    REDIS_TIME,
    Metric,
)
from flightsvc.metrics.recorder import Metrics

__all__ = [
    "COORDINATION_UP",
    "FLIGHTS_IN_FLIGHT",
    "FLIGHT_ACTIONS",
    "FLIGHT_ANSWERS",
    "FLIGHT_CALLERS",
    "FLIGHT_CALLS",
    "FLIGHT_CALL_TIME",
    "FLIGHT_ENDS",
    "FLIGHT_ERRORS",
    "FLIGHT_FALLBACKS",
    "FLIGHT_LATENESS",
    "FLIGHT_LEFT",
    "FLIGHT_LOCKS",
    "FLIGHT_LOST",
    "FLIGHT_RESULT_BYTES",
    "FLIGHT_WAITERS",
    "GUARD_ATTEMPTS",
    "GUARD_BREAKER",
    "GUARD_BULKHEAD",
    "GUARD_QUEUE",
    "GUARD_REJECTED",
    "GUARD_RETRIES",
    "HTTP_ANSWERS",
    "METRICS",
    "METRICS_MISUSED",
    "PROVIDER_ERRORS",
    "PROVIDER_TIME",
    "REDIS_ERRORS",
    "REDIS_TIME",
    "Metric",
    "Metrics",
]
