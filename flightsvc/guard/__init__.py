"""One safe call: time budget → retry → bulkhead → breaker → attempt timeout.

Knows no Redis and no flight: what is shared with other workers is handed in.
"""

from flightsvc.guard.breaker import ProbeLease, Target
from flightsvc.guard.guard import AiCallGuard

__all__ = ["AiCallGuard", "ProbeLease", "Target"]
