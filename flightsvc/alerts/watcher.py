"""``Alerts``: counts failures, and once a second looks whether anybody must be told."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import gevent
from gevent.event import Event

from flightsvc.alerts.alert import Alert, Sample
from flightsvc.alerts.channels import Channel
from flightsvc.alerts.counters import Counters
from flightsvc.alerts.outbox import Outbox
from flightsvc.alerts.rules import CALLS, breach_of, failures_of, may_tell
from flightsvc.checklist.model import AlertPolicy, Code
from flightsvc.facts import CallFacts
from flightsvc.logs import log_alert
from flightsvc.metrics import Metrics

#: time between two looks, in s
LOOK_S = 1.0
#: so many looks a failure is good for: what other workers counted is known a little later
LOOKS = 3
#: longest time that the last alerts are given when a worker stops, in s
CLOSE_S = 2.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Met:
    """A code with an alert policy that calls here failed with.

    :param times: since the last look.
    :param sample: the last failure.
    :param looks: so many looks more are worth it, now that it was met.
    """

    code: Code
    policy: AlertPolicy
    sample: Sample = field(default_factory=Sample)
    times: int = 0
    looks: int = 0


class Alerts:
    """The alerts of one worker.

    ``called``, ``failed`` and ``flagged`` are dict work and never wait. Everything else happens in
    background greenlets: one looks, and one a channel sends.

    :param service: the namespace, as alerts name it.
    :param codes: the checklist's codes by name.
    :param channels: beside the log, which gets every alert.
    :param counters: of all workers, or of this one.
    :param look_s: time between two looks, in s.
    """

    def __init__(
        self,
        service: str,
        codes: Mapping[str, Code],
        channels: Iterable[Channel],
        metrics: Metrics,
        *,
        counters: Counters,
        look_s: float = LOOK_S,
    ) -> None:
        self._service = service
        self._watched = {
            name: _Met(code, code.alert) for name, code in codes.items() if code.alert is not None
        }
        policies = [met.policy for met in self._watched.values()]
        self._rate_windows = {each.window_s for each in policies if each.count is None}
        self._outboxes = {channel.name: Outbox(channel, metrics) for channel in channels}
        self._counters = counters
        self._look_s = look_s
        self._codes = codes
        self._flags: list[tuple[Code, str, int]] = []
        self._calls = 0
        self._stop = Event()
        self._greenlet: gevent.Greenlet[[], None] | None = None

    def called(self, _facts: CallFacts) -> None:
        """See :class:`flightsvc.facts.CallWatch`."""
        self._calls += 1

    def failed(self, facts: CallFacts, *, flight_id: str) -> None:
        """See :class:`flightsvc.facts.CallWatch`."""
        met = self._watched.get(facts.code)
        if met is None:
            return
        met.times += 1
        met.sample = Sample(
            stage=facts.stage,
            trace_id=facts.trace_id,
            flight_id=flight_id,
            fingerprint=facts.fingerprint,
        )

    def flagged(self, module: str, code: str, failures: int) -> None:
        """The flag "needs a person" was raised, by this worker.

        :param module: the stage or provider, by its full name.
        :param code: what it failed with.
        :param failures: how often in a row.
        """
        known = self._codes.get(code)
        if known is not None and known.trips_alert is not None:
            self._flags.append((known, module, failures))

    def send(self, alert: Alert) -> None:
        """Send an alert through the channels of its policy, those of them that there are."""
        channels = [name for name in alert.policy.channels if name in self._outboxes]
        log_alert(
            f"{alert.title}: {alert.summary}",
            alert=alert.policy.name,
            alert_id=alert.id,
            severity=alert.policy.severity,
            code=alert.code.name,
            count=alert.count,
            rate=alert.rate,
            window_s=alert.policy.window_s,
            channels=channels,
            needs_person=alert.module or None,
            stage=alert.sample.stage or None,
            trace_id=alert.sample.trace_id or None,
            flight_id=alert.sample.flight_id or None,
            fingerprint=alert.sample.fingerprint or None,
        )
        for name in channels:
            self._outboxes[name].put(alert)

    def start(self) -> None:
        """Begin to look."""
        if self._greenlet is None:
            self._greenlet = gevent.spawn(self._run)

    def close(self) -> None:
        """Look once more, send what can be sent within about two seconds, and stop."""
        self._stop.set()
        if self._greenlet is not None:
            self._greenlet.join(CLOSE_S)
            self._greenlet.kill()
        gevent.joinall([gevent.spawn(box.close, CLOSE_S) for box in self._outboxes.values()])

    def _run(self) -> None:
        while not self._stop.wait(self._look_s):
            self._look_safely()
        self._look_safely()

    def _look_safely(self) -> None:
        try:
            self.look()
        except Exception:  # the next look may work; the loop must not die
            log.exception("alerts were not looked at")

    def look(self) -> None:
        """Count what came since the last look, and tell what must be told."""
        calls, self._calls = self._calls, 0
        if calls:
            for window_s in self._rate_windows:
                self._counters.count(CALLS, window_s, calls)
        for met in self._watched.values():
            if met.times:
                times, met.times = met.times, 0
                self._counters.count(failures_of(met.code), met.policy.window_s, times)
                met.looks = LOOKS
            if met.looks:
                met.looks -= 1
                self._judge(met)
        flags, self._flags = self._flags, []
        for code, module, failures in flags:
            self._tell_flag(code, module, failures)

    def _tell_flag(self, code: Code, module: str, failures: int) -> None:
        policy, met = code.trips_alert, self._watched.get(code.name)
        if policy is None or not may_tell(code, policy, self._counters, module):
            return
        alert = Alert(
            code=code,
            policy=policy,
            count=failures,
            rate=None,
            sample=met.sample if met is not None else Sample(),
            service=self._service,
            module=module,
            paused=code.pauses,
        )
        self.send(alert)

    def _judge(self, met: _Met) -> None:
        breach = breach_of(met.code, met.policy, self._counters)
        if breach is None or not may_tell(met.code, met.policy, self._counters):
            return
        alert = Alert(
            code=met.code,
            policy=met.policy,
            count=breach.count,
            rate=breach.rate,
            sample=met.sample,
            service=self._service,
        )
        self.send(alert)
