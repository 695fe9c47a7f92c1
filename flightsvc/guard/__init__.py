"""One safe call: time budget → retry → bulkhead → breaker → attempt timeout.

It obeys the checklist. It knows no Redis and no flight: what is shared with other workers is
handed in.
"""

from flightsvc.guard.guard import AiCallGuard
from flightsvc.guard.routes import Route, Routes, Target
from flightsvc.guard.shared import SharedGuardState
from flightsvc.guard.verdict import checked

__all__ = ["AiCallGuard", "Route", "Routes", "SharedGuardState", "Target", "checked"]
