"""What each failure means: one list that people can read and the guard obeys.

``checklist.toml`` is the shipped list; a user's file changes it. Knows errors and settings, and
nothing else of the service.
"""

from flightsvc.checklist.fingerprint import fingerprint
from flightsvc.checklist.loading import load_checklist
from flightsvc.checklist.model import (
    UNKNOWN,
    AlertPolicy,
    Checklist,
    Code,
    FallbackPolicy,
    RetryPolicy,
    StateChange,
)

__all__ = [
    "UNKNOWN",
    "AlertPolicy",
    "Checklist",
    "Code",
    "FallbackPolicy",
    "RetryPolicy",
    "StateChange",
    "fingerprint",
    "load_checklist",
]
