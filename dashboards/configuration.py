"""The files that StatsD, carbon and graphite-web read, for one chain on 127.0.0.1."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import NamedTuple

HOST = "127.0.0.1"
#: percentiles of timers that StatsD works out: ``upper_95`` and so on
PERCENTILES = (50, 95, 99)
#: flushes after which the gauge of a worker that is gone is forgotten
GAUGE_FLUSHES = 10

#: pictures in the dashboards' colours; ``/render?template=flightsvc-dark``
_COMMON = "fontName = Sans\nfontSize = 10\nfontBold = False\nfontItalic = False\n"
TEMPLATES = (
    "[default]\nbackground = #ffffff\nforeground = #24292f\nmajorLine = #d0d7de\n"
    "minorLine = #eaeef2\nlineColors = #0969da,#1a7f37,#bc4c00,#8250df,#cf222e,#0a7d91,#9a6700,"
    f"#bf3989,#57606a\n{_COMMON}\n"
    "[flightsvc-dark]\nbackground = #0d1117\nforeground = #c9d1d9\nmajorLine = #30363d\n"
    "minorLine = #21262d\nlineColors = #58a6ff,#3fb950,#f0883e,#bc8cff,#ff7b72,#39c5cf,#d29922,"
    f"#f778ba,#8b949e\n{_COMMON}"
)


class Ports(NamedTuple):
    """The ports of one chain."""

    statsd: int
    statsd_management: int
    carbon: int
    carbon_pickle: int
    carbon_query: int
    web: int


def write(folder: Path, ports: Ports, content: Path, *, flush_ms: int, retention: str) -> None:
    """Write all files.

    :param content: graphite-web's static files.
    :param flush_ms: time between two flushes of StatsD, in ms.
    :param retention: carbon's, e.g. ``1s:1h``.
    """
    for name in ("whisper", "log", "rrd", "ceres"):
        (folder / name).mkdir()
    files = {
        "statsd.js": statsd(ports, flush_ms),
        "carbon.conf": carbon(folder, ports),
        "storage-schemas.conf": f"[all]\npattern = .*\nretentions = {retention}\n",
        "storage-aggregation.conf": AGGREGATION,
        "graphTemplates.conf": TEMPLATES,
        "dashboard.conf": "[ui]\nrefresh_interval = 10\ntheme = default\n",
        "chain_settings.py": web(folder, ports, content),
    }
    for name, text in files.items():
        (folder / name).write_text(text)


def statsd(ports: Ports, flush_ms: int) -> str:
    """StatsD's configuration; JSON is JavaScript."""
    config = {
        "address": HOST,
        "port": ports.statsd,
        "mgmt_address": HOST,
        "mgmt_port": ports.statsd_management,
        "title": False,
        "graphiteHost": HOST,
        "graphitePort": ports.carbon,
        "graphite": {"legacyNamespace": False},
        "backends": ["./backends/graphite"],
        "flushInterval": flush_ms,
        "percentThreshold": PERCENTILES,
        "deleteGauges": True,
        "gaugesMaxTTL": GAUGE_FLUSHES,
        "automaticConfigReload": False,
    }
    return json.dumps(config, indent=2)


#: sums stay sums where carbon keeps them more coarsely; the first rule that fits counts
AGGREGATION = """\
[counts]
pattern = \\.(count|count_\\d+|sum|sum_\\d+)$
xFilesFactor = 0
aggregationMethod = sum
[highest]
pattern = \\.(upper|upper_\\d+)$
xFilesFactor = 0
aggregationMethod = max
[lowest]
pattern = \\.lower$
xFilesFactor = 0
aggregationMethod = min
[all]
pattern = .*
xFilesFactor = 0
aggregationMethod = average
"""


def carbon(folder: Path, ports: Ports) -> str:
    """carbon's configuration; it writes without a limit."""
    return f"""\
[cache]
STORAGE_DIR = {folder}
LOCAL_DATA_DIR = {folder}/whisper
LOG_DIR = {folder}/log
PID_DIR = {folder}
ENABLE_LOGROTATION = False
MAX_UPDATES_PER_SECOND = inf
MAX_CREATES_PER_MINUTE = inf
LINE_RECEIVER_INTERFACE = {HOST}
LINE_RECEIVER_PORT = {ports.carbon}
PICKLE_RECEIVER_INTERFACE = {HOST}
PICKLE_RECEIVER_PORT = {ports.carbon_pickle}
CACHE_QUERY_INTERFACE = {HOST}
CACHE_QUERY_PORT = {ports.carbon_query}
ENABLE_TAGS = False
CARBON_METRIC_INTERVAL = 0
"""


def web(folder: Path, ports: Ports, content: Path) -> str:
    """graphite-web's settings; whatever is in the carbon's cache is seen at once."""
    return f"""\
SECRET_KEY = {secrets.token_hex(16)!r}
ALLOWED_HOSTS = [{HOST!r}, "localhost"]
TIME_ZONE = "UTC"
CONF_DIR = STORAGE_DIR = {str(folder)!r}
LOG_DIR = {str(folder / "log")!r}
WHISPER_DIR = {str(folder / "whisper")!r}
RRD_DIR = {str(folder / "rrd")!r}
CERES_DIR = {str(folder / "ceres")!r}
STANDARD_DIRS = [WHISPER_DIR]
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3",
                          "NAME": {str(folder / "web.db")!r}}}}}
CARBONLINK_HOSTS = ["{HOST}:{ports.carbon_query}"]
TAGDB = ""
MEMCACHE_HOSTS = []
CACHES = {{"default": {{"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}}}
FIND_CACHE_DURATION = DEFAULT_CACHE_DURATION = 0
LEGEND_MAX_ITEMS = 12
WEBAPP_DIR = {str(content.parent)!r}
STATIC_ROOT = {str(folder / "static")!r}
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = True
"""
