"""What waits to be sent through one channel. A dead one holds up nobody but itself."""

from __future__ import annotations

import logging
import time

import gevent
from gevent.event import Event
from gevent.queue import Full, Queue

from flightsvc.alerts.alert import Alert
from flightsvc.alerts.channels import Channel, NotSent
from flightsvc.metrics import ALERTS_DROPPED, ALERTS_FAILED, ALERTS_SENT, Metrics

#: alerts that may wait for one channel
SIZE = 100
#: longest time for one try, in s
TIMEOUT_S = 10.0
#: waits before the further tries, in s
PAUSES_S = (1.0, 5.0, 25.0)
#: longest wait that the other side may ask for, in s
LONGEST_PAUSE_S = 60.0

log = logging.getLogger(__name__)


class Outbox:
    """A bounded queue before a channel, and the greenlet that empties it.

    :param timeout_s: longest time for one try, in s.
    :param pauses_s: the waits before further tries, in s; as many tries as waits, and one.
    """

    def __init__(
        self,
        channel: Channel,
        metrics: Metrics,
        *,
        size: int = SIZE,
        timeout_s: float = TIMEOUT_S,
        pauses_s: tuple[float, ...] = PAUSES_S,
    ) -> None:
        self.channel = channel
        self._metrics = metrics
        self._timeout_s = timeout_s
        self._pauses_s = pauses_s
        self._waiting: Queue[Alert] = Queue(size)
        self._in_hand: Alert | None = None
        self._closing = Event()
        self._greenlet: gevent.Greenlet[[], None] | None = None

    def put(self, alert: Alert) -> None:
        """Have an alert sent; never waits. A full queue drops it, and says so."""
        try:
            self._waiting.put_nowait(alert)
        except Full:
            self._metrics.count(ALERTS_DROPPED)
            log.error("alert %s dropped: %d wait for %s", alert.id, SIZE, self.channel.name)
            return
        if self._greenlet is None or self._greenlet.dead:
            self._greenlet = gevent.spawn(self._run)

    def close(self, within_s: float) -> None:
        """Try what waits once more, and stop. What is left then is counted as failed.

        :param within_s: longest time for that, in s.
        """
        self._closing.set()  # from now on nothing is tried twice
        if self._greenlet is None:
            return
        limit = time.monotonic() + within_s
        while not self._idle and time.monotonic() < limit:
            gevent.sleep(0.02)
        self._greenlet.kill()
        while not self._waiting.empty():
            self._give_up(self._waiting.get_nowait(), "the worker stops")

    @property
    def _idle(self) -> bool:
        return self._in_hand is None and self._waiting.empty()

    def _run(self) -> None:
        while True:
            self._waiting.peek()  # a killed greenlet must not take an alert along unseen
            self._in_hand = alert = self._waiting.get_nowait()
            try:
                self._deliver(alert)
            except gevent.GreenletExit:
                self._give_up(alert, "the worker stops")
                raise
            finally:
                self._in_hand = None

    def _deliver(self, alert: Alert) -> None:
        for pause_s in (*self._pauses_s, None):
            failure = self._try(alert)
            if failure is None:
                self._metrics.count(ALERTS_SENT, channel=self.channel.name)
                return
            if pause_s is None or not failure.passing or self._closing.is_set():
                self._give_up(alert, str(failure))
                return
            log.warning("alert %s: %s, tried again soon: %s", alert.id, self.channel.name, failure)
            self._closing.wait(max(pause_s, min(failure.retry_after_s or 0, LONGEST_PAUSE_S)))

    def _try(self, alert: Alert) -> NotSent | None:
        """One try; None if it was taken."""
        try:
            with gevent.Timeout(self._timeout_s):
                self.channel.send(alert, self._timeout_s)
        except NotSent as failure:
            return failure
        except gevent.Timeout:
            return NotSent(f"no answer within {self._timeout_s:g} s")
        except Exception as error:  # a fault of ours must not end the sending of the others
            log.exception("alert %s: %s failed unexpectedly", alert.id, self.channel.name)
            return NotSent(type(error).__name__, passing=False)
        return None

    def _give_up(self, alert: Alert, why: str) -> None:
        self._metrics.count(ALERTS_FAILED, channel=self.channel.name)
        log.error("alert %s was not sent: %s: %s", alert.id, self.channel.name, why)
