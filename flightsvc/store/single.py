"""One Redis server (or Valkey), by URL."""

from __future__ import annotations

from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import ConnectionPool, parse_url
from redis.retry import Retry

from flightsvc.errors import SettingsError
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.store.base import BLOCK_S, Store


def connection_options(url: str, timeout_s: float) -> dict[str, Any]:
    """What every connection is made with; ours win over the URL's query string."""
    try:
        options: dict[str, Any] = dict(parse_url(url))  # type: ignore[no-untyped-call]
    except ValueError as error:
        raise SettingsError(f"FLIGHTSVC_REDIS_URL is not a Redis URL: {error}") from None
    for ours in ("max_connections", "timeout", "decode_responses", "retry_on_timeout"):
        options.pop(ours, None)
    return options | {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "driver_info": None,
        "decode_responses": False,
    }


def single_server(settings: Settings, metrics: Metrics) -> Store:
    """The server that ``redis_url`` names; nothing is connected before it is used.

    :raises SettingsError: if the URL cannot be read.
    """
    url, timeout_s = settings.redis_url, settings.redis_timeout_ms / 1000
    commands = ConnectionPool(
        max_connections=settings.redis_connections, **connection_options(url, timeout_s)
    )
    # one greenlet reads; the place beside it is for the moment in which it changes
    reads = ConnectionPool(max_connections=2, **connection_options(url, BLOCK_S + timeout_s + 0.25))
    return Store(
        redis.Redis(connection_pool=commands),
        redis.Redis(connection_pool=reads),
        connections=settings.redis_connections,
        one_slot_a_read=False,
        metrics=metrics,
    )
