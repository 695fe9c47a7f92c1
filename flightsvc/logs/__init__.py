"""Logs: JSON lines with the golden fields, one a request and one a failure.

``fields`` is the schema, ``lines`` writes, ``formats`` and ``setup`` say how and where. No prompt,
answer or token stands in a line unless LOG_CONTENT allows the first two.
"""

from flightsvc.logs.lines import Told, log_alert, log_failure, log_request
from flightsvc.logs.setup import attach, configure, formatter
from flightsvc.logs.stack import stack_of

__all__ = [
    "Told",
    "attach",
    "configure",
    "formatter",
    "log_alert",
    "log_failure",
    "log_request",
    "stack_of",
]
