"""Which kind of Redis a URL names."""

from __future__ import annotations

from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.store.base import Store
from flightsvc.store.single import single_server


def open_store(settings: Settings, metrics: Metrics) -> Store:
    """The Redis of ``redis_url``; nothing is connected before it is used.

    :raises SettingsError: if the URL cannot be read.
    """
    return single_server(settings, metrics)
