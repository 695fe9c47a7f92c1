"""docs/metrics.md, made from the names: ``python -m flightsvc.metrics.document > docs/metrics.md``.

A test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flightsvc.metrics.names import GUNICORN_METRICS, METRICS, Metric
from flightsvc.metrics.series import LABEL_LENGTH, LABEL_SETS, OTHER

_TITLES = {
    "flight": "Flights: callers, answers, calls",
    "coordination": "Coordination",
    "redis": "Redis",
    "guard": "The guard: attempts, retries, places, breakers",
    "provider": "The model",
    "http": "HTTP",
    "records": "Records",
    "files": "Files",
    "shared": "What workers tell each other",
    "process": "The process",
    "alerts": "Alerts",
    "metrics": "The metrics themselves",
}

_HEAD = f"""\
# Metrics

<!-- made by `python -m flightsvc.metrics.document`; a test compares it with the code -->

With `FLIGHTSVC_STATSD_HOST` each worker sends these to StatsD by UDP, every
`FLIGHTSVC_STATSD_FLUSH_MS`, under `FLIGHTSVC_STATSD_PREFIX`. A StatsD that is gone, or a host name
that cannot be looked up, costs nothing. Without it they are counted in memory
(`flightsvc.metrics.snapshot()`).

Behind StatsD (with `legacyNamespace: false`, see [dashboards.md](dashboards.md)) they are called

| kind | name in Graphite |
|---|---|
| counter | `stats.counters.PREFIX.NAME.count`, and `.rate` per second |
| timer, in ms | `stats.timers.PREFIX.NAME.mean`, `.upper_95`, `.count`, … |
| gauge | `stats.gauges.PREFIX.NAME.WORKER` |

- A gauge ends in its worker's number, the lowest that is free: after a worker dies, the next one
  goes on under its name. Where several machines send to one StatsD, give each a prefix of its own
  (`flightsvc.HOST`): their workers have the same numbers.
- The number of names is bounded. A label has at most {LABEL_LENGTH} characters of
  `[A-Za-z0-9_-]`; a metric has at most {LABEL_SETS} sets of labels of its own, and as many more in
  which a new value is `{OTHER}`. Models that are not configured are `{OTHER}` from the start.
- A datagram has at most 512 bytes. Of many timings between two sendings a fair sample goes out,
  with its rate: counts stay right.

For each stage `callers` = `answers` of all roles + `errors` of all codes + `left`, and `saved` =
`answers` of the roles `follower`, `replay` and `l1` in which nothing stood in.
"""

_GUNICORN = """\
gunicorn sends its own numbers beside them, under the same prefix, request by request.
`--statsd-host` and `--statsd-prefix` of gunicorn's command line send them elsewhere.
"""
_COLUMNS = "| name | kind, unit | says | answers the question |\n|---|---|---|---|"


def document() -> str:
    """The page."""
    own = _section("gunicorn's own", GUNICORN_METRICS, _GUNICORN)
    return "\n".join([_HEAD, *_rooms(), own])


def _rooms() -> Iterator[str]:
    for room, title in _TITLES.items():
        yield _section(title, [one for one in METRICS if one.name.partition(".")[0] == room])


def _section(title: str, metrics: Iterable[Metric], text: str = "") -> str:
    head = [f"## {title}", ""] + ([text] if text else [])
    return "\n".join([*head, _COLUMNS, *(_row(metric) for metric in metrics)]) + "\n"


def _row(one: Metric) -> str:
    return f"| `{one.name}` | {one.kind}, {one.unit} | {one.meaning} | {one.decision} |"


if __name__ == "__main__":
    print(document(), end="")
