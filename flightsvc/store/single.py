"""One Redis server (or Valkey), by URL."""

from __future__ import annotations

from flightsvc.settings import Settings
from flightsvc.settings.redis_url import RedisUrl
from flightsvc.store.router import OneServer
from flightsvc.store.server import Server, Wiring


def single_server(settings: Settings, url: RedisUrl) -> OneServer:
    """The server that ``redis_url`` names; nothing is connected before it is used."""
    # one greenlet reads; the place beside it is for the moment in which it changes
    wiring = Wiring.of(settings, url, reads=2)
    if url.kind == "unix":
        return OneServer(Server("", wiring, path=url.path))
    host, port = url.addresses[0]
    return OneServer(Server("", wiring, host=host, port=port))
