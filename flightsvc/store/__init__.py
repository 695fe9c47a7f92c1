"""Redis: the only room that imports its client. Connections, script loading, names."""

from flightsvc.store.errors import StoreError
from flightsvc.store.names import Names
from flightsvc.store.redis_store import RedisStore
from flightsvc.store.scripts import Verb

__all__ = ["Names", "RedisStore", "StoreError", "Verb"]
