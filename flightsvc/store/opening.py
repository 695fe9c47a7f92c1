"""Which kind of Redis a URL names."""

from __future__ import annotations

from pathlib import Path

from flightsvc.errors import SettingsError
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.settings.redis_url import RedisUrl, parse_redis_url
from flightsvc.store.base import Store
from flightsvc.store.cluster import ClusterRouter
from flightsvc.store.router import Router
from flightsvc.store.sentinel import SentinelRouter
from flightsvc.store.single import single_server

#: options of a Redis URL that name a file or a folder
_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")


def open_store(settings: Settings, metrics: Metrics) -> Store:
    """The Redis of ``redis_url``; nothing is connected before it is used.

    :raises SettingsError: if the URL cannot be read, or names a file that cannot.
    """
    try:
        url = parse_redis_url(settings.redis_url)
    except ValueError as fault:
        raise SettingsError(f"FLIGHTSVC_REDIS_URL {fault}") from None
    _check_files(url)
    return Store(_router(settings, url), metrics)


def _router(settings: Settings, url: RedisUrl) -> Router:
    if url.kind == "sentinel":
        return SentinelRouter(settings, url)
    if url.kind == "cluster":
        return ClusterRouter(settings, url)
    return single_server(settings, url)


def _check_files(url: RedisUrl) -> None:
    """A certificate that is not there would look like a Redis that does not answer, for ever."""
    for option in _FILES:
        path = url.options.get(option)
        if path is not None and not Path(path).exists():
            raise SettingsError(
                f"FLIGHTSVC_REDIS_URL has {option}={path}, which is not there: correct the path."
            )
