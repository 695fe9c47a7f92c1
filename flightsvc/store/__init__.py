"""Redis: the only room that imports its client. Connections, script loading, names."""

from flightsvc.store.base import Store
from flightsvc.store.errors import StoreError
from flightsvc.store.names import Names
from flightsvc.store.opening import open_store
from flightsvc.store.scripts import Verb

__all__ = ["Names", "Store", "StoreError", "Verb", "open_store"]
