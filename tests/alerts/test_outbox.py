"""Sending: a dead channel holds up nobody, what is given up is counted."""

from __future__ import annotations

import time
from typing import Any

import gevent
import pytest
from gevent.event import Event

from flightsvc.alerts import Alert
from flightsvc.alerts.channels import NotSent
from flightsvc.alerts.outbox import Outbox
from flightsvc.metrics import Metrics
from tests.alerts.scene import Recorder, alert, until


class Gate(Recorder):
    """A channel that takes nothing until it is opened."""

    def __init__(self, name: str = "webhook") -> None:
        super().__init__(name)
        self.open = Event()

    def send(self, alert: Alert, timeout_s: float) -> None:
        self.tries += 1
        self.open.wait()
        self.sent.append(alert)


def counted(metrics: Metrics) -> dict[str, float]:
    return {name: value for name, value in metrics.snapshot().items() if value}


def make(channel: Recorder, **values: Any) -> tuple[Outbox, Metrics]:
    metrics = Metrics.off()
    given: dict[str, Any] = {"pauses_s": (0.01, 0.02), "timeout_s": 5, **values}
    return Outbox(channel, metrics, **given), metrics


def test_what_is_put_is_sent_in_order_and_counted() -> None:
    channel = Recorder()
    box, metrics = make(channel)
    alerts = [alert() for _ in range(5)]
    for each in alerts:
        box.put(each)
    until(lambda: len(channel.sent) == 5)
    assert channel.sent == alerts
    box.close(1)
    assert counted(metrics) == {"alerts.sent.webhook": 5}


def test_what_may_pass_is_tried_again_with_longer_pauses() -> None:
    channel = Recorder(failures=[NotSent("HTTP 503"), NotSent("HTTP 503")])
    box, metrics = make(channel, pauses_s=(0.05, 0.2))
    began = time.monotonic()
    box.put(alert())
    until(lambda: channel.sent)
    assert time.monotonic() - began >= 0.25
    assert channel.tries == 3
    assert counted(metrics) == {"alerts.sent.webhook": 1}


@pytest.mark.parametrize(
    ("failures", "tries"),
    [
        ([NotSent("HTTP 503")] * 10, 3),
        ([NotSent("HTTP 404", passing=False)], 1),
        ([RuntimeError("a fault of the channel")], 1),
    ],
)
def test_what_does_not_pass_is_given_up_and_the_next_alert_goes_on(
    failures: list[Exception], tries: int
) -> None:
    channel = Recorder(failures=failures[:tries])
    box, metrics = make(channel)
    box.put(alert())
    box.put(last := alert())
    until(lambda: channel.sent)
    assert channel.sent == [last]
    assert channel.tries == tries + 1
    assert counted(metrics) == {"alerts.failed.webhook": 1, "alerts.sent.webhook": 1}


def test_the_other_side_may_ask_for_a_longer_pause() -> None:
    channel = Recorder(failures=[NotSent("HTTP 429", retry_after_s=0.3)])
    box, _ = make(channel)
    began = time.monotonic()
    box.put(alert())
    until(lambda: channel.sent)
    assert time.monotonic() - began >= 0.3


def test_a_try_is_bounded_in_time() -> None:
    channel = Gate()
    box, metrics = make(channel, timeout_s=0.05, pauses_s=())
    box.put(alert())
    until(lambda: counted(metrics))
    assert counted(metrics) == {"alerts.failed.webhook": 1}


def test_a_full_queue_drops_and_says_so_without_waiting() -> None:
    channel = Gate()
    box, metrics = make(channel, size=3)
    box.put(alert())
    until(lambda: channel.tries)
    began = time.monotonic()
    for _ in range(10):
        box.put(alert())
    assert time.monotonic() - began < 1
    assert counted(metrics) == {"alerts.dropped": 7}
    channel.open.set()
    until(lambda: len(channel.sent) == 4)


def test_closing_tries_once_more_and_counts_what_is_left() -> None:
    ready, dead = Recorder(failures=[NotSent("HTTP 503")] * 2), Gate("email")
    (good, good_metrics), (bad, bad_metrics) = make(ready, pauses_s=(60,)), make(dead)
    for box in (good, bad):
        box.put(alert())
        box.put(alert())
    until(lambda: ready.tries == 1 and dead.tries == 1)
    began = time.monotonic()
    gevent.joinall([gevent.spawn(box.close, 0.3) for box in (good, bad)])

    assert time.monotonic() - began < 5
    # the first was waiting for its second try, which failed as well; the second got its one try
    assert counted(good_metrics) == {"alerts.failed.webhook": 1, "alerts.sent.webhook": 1}
    assert counted(bad_metrics) == {"alerts.failed.email": 2}


def test_closing_an_unused_box_takes_no_time() -> None:
    box, metrics = make(Recorder())
    box.close(60)
    assert counted(metrics) == {}
