"""Where values gather between two flushes, and the clean, bounded names they gather under.

StatsD clients clean nothing: ``:``, ``|`` or a line end in a name makes a second metric out of
it. Here each label is cleaned, cut and counted before it becomes part of a name.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping
from random import random

from flightsvc.metrics.names import Metric

#: longest label, in characters
LABEL_LENGTH = 40
#: label sets of one metric that keep their own values; up to as many more have ``other`` in them
LABEL_SETS = 100
#: timings of one series that are kept between two flushes; the others are in the sample's rate
SAMPLES = 100
#: stands for every value that gets no name of its own
OTHER = "other"
#: no value is as large; keeps lines short
LARGEST = 1e15

log = logging.getLogger("flightsvc.metrics")

_UNCLEAN = re.compile(r"[^A-Za-z0-9_-]")


def clean(value: str) -> str:
    """The value as part of a metric name: at most 40 of ``[A-Za-z0-9_-]``; ``none`` if empty."""
    return _UNCLEAN.sub("_", value[:LABEL_LENGTH]) or "none"


class Counter:
    """A total that only rises, and how much of it was already sent."""

    __slots__ = ("name", "sent", "total")

    def __init__(self, name: str) -> None:
        self.name = name
        self.reset()

    def reset(self) -> None:
        """Start again from nothing."""
        self.total = self.sent = 0

    def take(self) -> int:
        """What came since the last call."""
        new, self.sent = self.total - self.sent, self.total
        return new


class Timer:
    """Timings: all are counted, a fair sample of at most ``SAMPLES`` is kept until the flush."""

    __slots__ = ("count", "name", "samples", "seconds", "sent")

    def __init__(self, name: str) -> None:
        self.name = name
        self.reset()

    def reset(self) -> None:
        """Start again from nothing."""
        self.count = self.sent = 0
        self.seconds = 0.0
        self.samples: list[float] = []

    def add(self, seconds: float) -> None:
        """Count one timing (Vitter's algorithm R keeps the sample fair)."""
        self.count += 1
        self.seconds += seconds
        if len(self.samples) < SAMPLES:
            self.samples.append(seconds)
            return
        place = int(random() * (self.count - self.sent))
        if place < SAMPLES:
            self.samples[place] = seconds

    def take(self) -> tuple[list[float], float]:
        """The sample since the last call, in seconds, and its rate: kept / counted."""
        counted = self.count - self.sent
        samples, self.samples, self.sent = self.samples, [], self.count
        return samples, len(samples) / counted if counted else 1.0


class Gauge:
    """A value that is read when it is sent."""

    __slots__ = ("failed", "name", "read")

    def __init__(self, name: str) -> None:
        self.name = name
        self.read: Callable[[], float] = lambda: math.nan
        self.failed = False

    def reset(self) -> None:
        """Keep the reader: it reads this process's own state."""

    def value(self) -> float | None:
        """What the reader says now; None (and one log line) where it fails or is not finite."""
        try:
            value = self.read()
            return value if abs(value) < LARGEST else None
        except Exception as error:  # the reader is foreign code; other metrics must still go out
            if not self.failed:
                log.warning("gauge %s cannot be read: %r", self.name, error)
            self.failed = True
            return None


Series = Counter | Timer | Gauge
_CLASSES: Mapping[str, type[Counter | Timer | Gauge]] = {
    "counter": Counter,
    "timer": Timer,
    "gauge": Gauge,
}


class Family:
    """All series of one metric; the number of them is bounded."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.series: dict[str, Series] = {}
        self._seen: tuple[set[str], ...] = tuple(set() for _ in metric.labels)

    def get(self, values: Iterable[str]) -> Series:
        """The series for these cleaned label values, in the order of the name."""
        values = tuple(values)
        name = self._name(values)
        if name not in self.series and len(self.series) >= LABEL_SETS:
            values = self._fewer(values)
            name = self._name(values)
        if name not in self.series:
            for seen, value in zip(self._seen, values, strict=True):
                seen.add(value)
            self.series[name] = _CLASSES[self.metric.kind](name)
        return self.series[name]

    def _fewer(self, values: tuple[str, ...]) -> tuple[str, ...]:
        """``other`` for the values that are new; for all of them once that is too many too."""
        if len(self.series) >= 2 * LABEL_SETS - 1:
            return (OTHER,) * len(values)
        pairs = zip(values, self._seen, strict=True)
        return tuple(value if value in seen else OTHER for value, seen in pairs)

    def _name(self, values: tuple[str, ...]) -> str:
        return self.metric.name.format_map(dict(zip(self.metric.labels, values, strict=True)))
