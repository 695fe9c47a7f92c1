"""``Metrics``: count, time and gauge from anywhere, at the price of a dict look-up."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar

import gevent
from gevent.event import Event

from flightsvc.metrics.names import METRICS_MISUSED, Kind, Metric
from flightsvc.metrics.series import LARGEST, OTHER, Counter, Family, Gauge, Series, Timer, clean
from flightsvc.metrics.statsd_sender import StatsdSender

if TYPE_CHECKING:
    from flightsvc.settings import Settings

#: longest prefix, in characters; with it every line fits a datagram
PREFIX_LENGTH = 100
#: look-ups that are remembered, each with labels up to this length; others are worked out again
REMEMBERED, REMEMBERED_LENGTH = 4_096, 200
#: how long ``close`` waits for the last flush, and for an address before it, in s
CLOSE_S, CLOSE_ADDRESS_S = 1.0, 0.3

log = logging.getLogger("flightsvc.metrics")


def clean_prefix(prefix: str) -> str:
    """A prefix as it is sent: clean parts, joined by dots, none at either end."""
    return ".".join(clean(part) for part in prefix[:PREFIX_LENGTH].split(".") if part)


class Metrics:
    """The metrics of one process.

    ``count``, ``time`` and ``gauge`` never raise and never wait. Values gather in memory; after
    :meth:`start` a greenlet sends them. Wrong use (a label that the metric does not have, a count
    of a timer) is counted as ``metrics.misused``; it raises only where ``strict`` is set.

    :param host: StatsD server; empty: nothing is sent.
    :param port: its UDP port.
    :param prefix: first part of every name that is sent.
    :param flush_ms: time between two sendings, in ms.
    :param worker: name of this worker, last part of its gauges' names: a gauge of one worker
        must not overwrite another's.
    """

    #: raise on wrong use; for tests
    strict: ClassVar[bool] = False

    def __init__(
        self,
        host: str = "",
        port: int = 8125,
        *,
        prefix: str = "flightsvc",
        flush_ms: int = 1_000,
        worker: str = "",
    ) -> None:
        self._address = (host, port)
        self._prefix = clean_prefix(prefix)
        self._flush_s = flush_ms / 1000
        self._worker = clean(worker) if worker else ""
        self._families: dict[Metric, Family] = {}
        self._found: dict[tuple[object, ...], Series] = {}
        self._known: dict[str, set[str]] = {}
        self._pid = os.getpid()
        self._stop = Event()
        self._loop: gevent.Greenlet[[Event, int], None] | None = None

    @classmethod
    def off(cls) -> Metrics:
        """Count in memory, send nothing."""
        return cls()

    @classmethod
    def from_settings(cls, settings: Settings, worker: str = "") -> Metrics:
        """As the settings say; models other than the configured one share one name."""
        metrics = cls(
            settings.statsd_host,
            settings.statsd_port,
            prefix=settings.statsd_prefix,
            flush_ms=settings.statsd_flush_ms,
            worker=worker,
        )
        metrics.know("model", "simulated", settings.openai_model)
        metrics.know("model", *(stage.flow_id for stage in settings.stages.values()))
        return metrics

    def know(self, label: str, *values: str) -> None:
        """From now on only these values (and those of earlier calls) of a label get a name of
        their own; all others share ``other``."""
        self._known.setdefault(label, set()).update(value for value in values if value)
        self._found.clear()

    def count(self, metric: Metric, value: int = 1, /, **labels: str) -> None:
        """Add to a counter."""
        try:
            counter = self._found.get((metric, *labels.items()))
            if counter is None:
                counter = self._find(metric, "counter", labels)
            if not 0 <= value < LARGEST:
                raise ValueError(f"a count of {value!r}")
            counter.total += value  # type: ignore[union-attr]  # misuse ends below
        except Exception as error:  # a metric must never fail a request
            self._misused(metric, error)

    def time(self, metric: Metric, seconds: float, /, **labels: str) -> None:
        """Add one timing, in seconds; below 0 counts as 0."""
        try:
            timer = self._found.get((metric, *labels.items()))
            if timer is None:
                timer = self._find(metric, "timer", labels)
            if not seconds < 1e9:
                raise ValueError(f"a time of {seconds!r} s")
            timer.add(seconds if seconds > 0 else 0.0)  # type: ignore[union-attr]
        except Exception as error:  # a metric must never fail a request
            self._misused(metric, error)

    def counter(self, metric: Metric, /, **labels: str) -> Counter:
        """The counter itself, where a look-up a call is too much: add to its ``total``.

        :raises TypeError: the metric is no counter.
        """
        counter = self._find(metric, "counter", labels)
        assert isinstance(counter, Counter)
        return counter

    def timer(self, metric: Metric, /, **labels: str) -> Timer:
        """The timer itself, where a look-up a call is too much: ``add`` seconds, not below 0.

        :raises TypeError: the metric is no timer.
        """
        timer = self._find(metric, "timer", labels)
        assert isinstance(timer, Timer)
        return timer

    def gauge(self, metric: Metric, read: Callable[[], float], /, **labels: str) -> None:
        """Read a gauge by ``read()`` at each sending; a later call replaces the reader."""
        try:
            gauge = self._find(metric, "gauge", labels)
            assert isinstance(gauge, Gauge)
            gauge.read = read
        except Exception as error:  # a metric must never fail a request
            self._misused(metric, error)

    def start(self) -> None:
        """Begin to send, in the background. Again after a fork: the child starts from nothing."""
        if os.getpid() != self._pid:
            self._pid = os.getpid()
            self._loop = None
            for series in self._all():
                series.reset()
        if self._address[0] and (self._loop is None or self._loop.dead):
            self._stop = Event()
            self._loop = gevent.spawn(self._run, self._stop, self._pid)

    def close(self) -> None:
        """Send what is left, if the server's address is known, and stop; within about a second."""
        loop, self._loop = self._loop, None
        if loop is None or os.getpid() != self._pid:
            return
        self._stop.set()
        loop.join(CLOSE_S)
        if not loop.dead:
            loop.kill(block=False)

    def snapshot(self) -> dict[str, float]:
        """Totals since the process began, by name without the prefix.

        A counter's total, a timer's number of timings (and their sum in seconds as
        ``<name>.sum_s``), a gauge's value now.
        """
        values: dict[str, float] = {}
        for series in self._all():
            if isinstance(series, Counter):
                values[series.name] = series.total
            elif isinstance(series, Timer):
                values[series.name] = series.count
                values[series.name + ".sum_s"] = series.seconds
            else:
                value = series.value()
                if value is not None:
                    values[series.name] = value
        return values

    def total(self, metric: Metric) -> int:
        """A counter since the process began, over all its labels."""
        family = self._families.get(metric)
        series = family.series.values() if family is not None else ()
        return sum(each.total for each in series if isinstance(each, Counter))

    def _run(self, stop: Event, pid: int) -> None:
        host, port = self._address
        sender = StatsdSender(host, port, prefix=self._prefix, worker=self._worker)
        try:
            while not stop.wait(self._flush_s) and os.getpid() == pid:
                self._send(sender)
            if os.getpid() == pid and sender.wait_ready(CLOSE_ADDRESS_S):
                self._send(sender)
        finally:
            sender.close()

    def _send(self, sender: StatsdSender) -> None:
        try:
            sender.send(self._all())
        except Exception:  # the next flush may work; the loop must not die
            log.exception("metrics were not sent")

    def _all(self) -> Iterator[Series]:
        for family in list(self._families.values()):
            yield from list(family.series.values())

    def _find(self, metric: Metric, kind: Kind, labels: dict[str, str]) -> Series:
        """The series of a call that is not remembered."""
        if metric.kind != kind:
            raise TypeError(f"{metric.name} is a {metric.kind}, not a {kind}")
        if labels.keys() != set(metric.labels):
            error = TypeError(f"{metric.name} given labels {sorted(labels)}")
            self._misused(metric, error)
        family = self._families.get(metric)
        if family is None:
            family = self._families[metric] = Family(metric)
        series = family.get(
            self._label(label, str(labels.get(label, ""))) for label in metric.labels
        )
        short = all(len(value) <= REMEMBERED_LENGTH for value in labels.values())
        if short and len(self._found) < REMEMBERED:
            self._found[(metric, *labels.items())] = series
        return series

    def _label(self, label: str, value: str) -> str:
        known = self._known.get(label)
        return clean(value) if known is None or value in known else OTHER

    def _misused(self, metric: Metric, error: Exception) -> None:
        if self.strict:
            raise error
        self.count(METRICS_MISUSED)
        log.debug("metric %r: %s", metric, error)
