"""How a metric is called in Graphite, behind StatsD without its legacy namespace.

A description can only name metrics that exist: it is made of the objects in
``flightsvc.metrics.names``.
"""

from __future__ import annotations

from flightsvc.metrics import Metric


class Paths:
    """Names below one StatsD prefix.

    :param prefix: FLIGHTSVC_STATSD_PREFIX; ``flightsvc.*`` where each machine has its own.
    """

    def __init__(self, prefix: str = "flightsvc") -> None:
        self.prefix = prefix

    @property
    def machines(self) -> list[int]:
        """Which parts of a path, from 0, tell one machine from another: wildcards of the prefix."""
        return [at for at, part in enumerate(self.prefix.split("."), 2) if "*" in part]

    def counter(self, metric: Metric, stat: str = "rate", /, **labels: str) -> str:
        """A counter; ``rate`` is in 1/s, ``count`` what came between two flushes."""
        return f"{self._of('counter', metric, labels)}.{stat}"

    def timer(self, metric: Metric, stat: str, /, **labels: str) -> str:
        """A timer; ``mean``, ``upper_95``, … in ms."""
        return f"{self._of('timer', metric, labels)}.{stat}"

    def gauge(self, metric: Metric, /, **labels: str) -> str:
        """A gauge, of each worker."""
        return f"{self._of('gauge', metric, labels)}.*"

    def node(self, metric: Metric, label: str) -> int:
        """Which part of a metric's path, from 0, a label is."""
        name = metric.name.split(".")
        return 2 + self.prefix.count(".") + 1 + name.index(f"{{{label}}}")

    def _of(self, kind: str, metric: Metric, labels: dict[str, str]) -> str:
        if metric.kind != kind:
            raise TypeError(f"{metric.name} is a {metric.kind}, not a {kind}")
        wrong = labels.keys() - set(metric.labels)
        if wrong:
            raise TypeError(f"{metric.name} has no label {', '.join(sorted(wrong))}")
        given = {label: labels.get(label, "*") for label in metric.labels}
        return f"stats.{kind}s.{self.prefix}.{metric.name.format_map(given)}"
