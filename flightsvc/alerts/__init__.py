"""Alerts: who is told that a failure of the checklist comes too often.

``watcher`` counts and looks, ``rules`` decides, ``outbox`` sends through ``channels`` and ``mail``.
What is shared by the workers is handed in (``counters.Counters``).
"""

from flightsvc.alerts.alert import Alert, Sample
from flightsvc.alerts.counters import Counters, LocalCounters
from flightsvc.alerts.opening import open_channels
from flightsvc.alerts.watcher import Alerts

__all__ = ["Alert", "Alerts", "Counters", "LocalCounters", "Sample", "open_channels"]
