"""Graphite's expressions for what a board shows of a metric."""

from __future__ import annotations

from dashboards.paths import Paths
from flightsvc.metrics import Metric


class Words:
    """Expressions below one StatsD prefix.

    :param window: over which rates are smoothed, as Graphite writes it (``1min``).
    """

    def __init__(self, prefix: str = "flightsvc", window: str = "1min") -> None:
        self.paths = Paths(prefix)
        self.window = window

    def smooth(self, expression: str) -> str:
        """An average over the window."""
        return f"movingAverage({expression},'{self.window}')"

    def rate(self, metric: Metric, **labels: str) -> str:
        """All series of a counter together, per second.

        Before the first count is 0, not nothing: an average over what is there would be too high.
        """
        return self.smooth(f"transformNull(sumSeries({self.paths.counter(metric, **labels)}),0)")

    def by(self, metric: Metric, label: str) -> str:
        """A counter per second, one line for each value of a label."""
        node = self.paths.node(metric, label)
        smooth = self.smooth(f"transformNull({self.paths.counter(metric)},0)")
        return f"groupByNode({smooth},{node},'sum')"

    def sum(self, metric: Metric, **labels: str) -> str:
        """How often, within the window."""
        counts = f"sumSeries({self.paths.counter(metric, 'count', **labels)})"
        return self.calm(f"movingSum({counts},'{self.window}')")

    def calm(self, expression: str) -> str:
        """0 where there is no such series: what counts mishaps comes with the first of them."""
        return f"fallbackSeries({expression},constantLine(0))"

    def money(self, metric: Metric) -> str:
        """Millionths, added up from the left edge."""
        counts = self.paths.counter(metric, "count")
        return f"integral(scale(sumSeries({counts}),0.000001))"

    def highest(self, metric: Metric, stat: str = "upper_95", **labels: str) -> str:
        """The worst of all series of a timer."""
        return self.smooth(f"maxSeries({self.paths.timer(metric, stat, **labels)})")

    def highest_by(self, metric: Metric, label: str) -> str:
        """The worst of a timer, one line for each value of a label."""
        node, path = self.paths.node(metric, label), self.paths.timer(metric, "upper_95")
        return f"groupByNode({self.smooth(path)},{node},'max')"

    def now(self, metric: Metric) -> str:
        """A gauge, all workers together; its highest value within the window."""
        return f"movingMax(sumSeries({self.paths.gauge(metric)}),'{self.window}')"

    def now_by(self, metric: Metric, label: str) -> str:
        """A gauge's highest value within the window, one line for each value of a label."""
        node, path = self.paths.node(metric, label), self.paths.gauge(metric)
        return f"groupByNode(movingMax({path},'{self.window}'),{node},'sum')"

    def by_worker(self, metric: Metric, factor: float = 1) -> str:
        """A gauge, one line for each worker."""
        path = self.paths.gauge(metric)
        scaled = path if factor == 1 else f"scale({path},{factor:f})"
        nodes = ",".join(map(str, [*self.paths.machines, -1]))
        return f"aliasSub(aliasByNode({scaled},{nodes}),'^','worker ')"
