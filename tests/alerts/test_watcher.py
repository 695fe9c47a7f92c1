"""When alerts are sent: thresholds, windows, and once for all workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from flightsvc.alerts import Alerts, LocalCounters
from flightsvc.checklist import load_checklist
from flightsvc.checklist.model import AlertPolicy
from flightsvc.facts import CallFacts
from flightsvc.logs.formats import JsonFormatter
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.store import open_store
from flightsvc.store.shared import SharedState
from tests.alerts.scene import Recorder, code, policy, until
from tests.logs.reading import Written, read
from tests.support.redis_server import RedisServer

CODE = "AI_INFRA_TIMEOUT"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Scene:
    """Alerts with one code, looked at by hand."""

    def __init__(self, broken: AlertPolicy | None, *channels: Recorder) -> None:
        self.clock, self.metrics = Clock(), Metrics.off()
        self.alerts = Alerts(
            "shop",
            {CODE: code(broken)},
            channels,
            self.metrics,
            counters=LocalCounters(self.clock),
        )
        self.written = Written(JsonFormatter())

    def fail(self, times: int = 1, *, calls: int | None = None, **facts: Any) -> None:
        for _ in range(times if calls is None else calls):
            self.alerts.called(CallFacts())
        for _ in range(times):
            self.alerts.failed(CallFacts(code=CODE, **facts), flight_id="cd" * 16)
        self.alerts.look()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return read("\n".join(self.written.lines), "alert")


@pytest.fixture
def make() -> Iterator[Callable[..., Scene]]:
    made: list[Scene] = []

    def scene(broken: AlertPolicy | None, *channels: Recorder) -> Scene:
        made.append(Scene(broken, *channels))
        made[-1].written.__enter__()
        return made[-1]

    yield scene
    for each in made:
        each.written.__exit__()
        each.alerts.close()


def test_a_count_alerts_when_it_is_reached_and_says_what_and_where(
    make: Callable[..., Scene],
) -> None:
    webhook = Recorder()
    scene = make(policy(count=3), webhook)
    scene.fail(2)
    assert scene.lines == []
    scene.fail(1, stage="evaluation", trace_id="ab" * 16, fingerprint="ef" * 8)
    until(lambda: webhook.sent)

    (line,) = scene.lines
    (sent,) = webhook.sent
    assert (line["alert"], line["severity"], line["code"]) == ("timeouts", "P2", CODE)
    assert (line["count"], line["rate"], line["window_s"]) == (3, None, 60)
    assert (line["trace_id"], line["fingerprint"]) == ("ab" * 16, "ef" * 8)
    assert (line["stage"], line["flight_id"]) == ("evaluation", "cd" * 16)
    assert line["channels"] == ["webhook"]
    assert line["alert_id"] == sent.id
    assert "3 failures within 60 s" in line["message"]


def test_it_is_sent_once_a_window_and_again_if_it_goes_on(make: Callable[..., Scene]) -> None:
    scene = make(policy(count=3, window_s=60))
    scene.fail(30)
    for _ in range(5):
        scene.fail(10)
    assert len(scene.lines) == 1
    scene.clock.now += 61
    scene.fail(2)
    assert len(scene.lines) == 1  # the earlier ones are out of the window
    scene.fail(1)
    assert [line["count"] for line in scene.lines] == [30, 3]


@pytest.mark.parametrize(
    ("failures", "calls", "alerts"),
    [(1, 19, 0), (2, 40, 1), (2, 41, 0), (20, 20, 1), (0, 100, 0)],
)
def test_a_rate_is_a_share_of_enough_calls(
    make: Callable[..., Scene], failures: int, calls: int, alerts: int
) -> None:
    scene = make(policy(count=None, rate=0.05, min_calls=20))
    scene.fail(failures, calls=calls)
    assert len(scene.lines) == alerts
    for line in scene.lines:
        assert line["rate"] == failures / calls
        assert "of all calls" in line["message"]


def test_failures_without_a_policy_and_codes_that_nobody_knows_wake_nobody(
    make: Callable[..., Scene],
) -> None:
    scene = make(None)
    scene.fail(100)
    scene.alerts.failed(CallFacts(code="SOMETHING"), flight_id="")
    scene.alerts.look()
    assert scene.lines == []


def test_channels_without_an_address_are_left_out_and_the_log_gets_every_alert(
    make: Callable[..., Scene],
) -> None:
    email, unasked = Recorder("email"), Recorder("webhook")
    scene = make(policy(count=1, channels=("wecom", "email", "log")), email, unasked)
    scene.fail()
    until(lambda: email.sent)
    assert [line["channels"] for line in scene.lines] == [["email"]]
    assert unasked.sent == []


def test_it_looks_by_itself_and_once_more_at_the_end() -> None:
    def alerts(look_s: float, webhook: Recorder) -> Alerts:
        codes = {CODE: code(policy(count=1))}
        made = Alerts(
            "shop", codes, [webhook], Metrics.off(), counters=LocalCounters(), look_s=look_s
        )
        made.start()
        made.failed(CallFacts(code=CODE), flight_id="")
        return made

    quick, late = Recorder(), Recorder()
    running = alerts(0.01, quick)
    until(lambda: quick.sent)
    running.close()
    ending = alerts(60, late)
    ending.close()
    assert len(late.sent) == 1


def test_a_fault_of_the_counters_does_not_end_the_looking() -> None:
    class Faulty(LocalCounters):
        faults = 1

        def count(self, name: str, window_s: float, times: int = 1) -> None:
            if self.faults:
                self.faults -= 1
                raise RuntimeError("a fault")
            super().count(name, window_s, times)

    webhook = Recorder()
    codes = {CODE: code(policy(count=1))}
    alerts = Alerts("shop", codes, [webhook], Metrics.off(), counters=Faulty(), look_s=0.01)
    with Written(JsonFormatter()) as written:
        alerts.start()
        alerts.failed(CallFacts(code=CODE), flight_id="")
        until(lambda: written.lines)
        alerts.failed(CallFacts(code=CODE), flight_id="")
        until(lambda: webhook.sent)
        alerts.close()


def test_workers_count_together_and_one_of_them_tells(
    redis_server: RedisServer, namespace: str
) -> None:
    """Ten failures in two workers break a policy that neither breaks alone."""
    settings = Settings(redis_url=redis_server.url, namespace=namespace)
    metrics = Metrics.off()
    stores = [open_store(settings, metrics) for _ in range(2)]
    shared = [
        SharedState(settings, metrics, store, worker=f"w{n}") for n, store in enumerate(stores)
    ]
    webhook = Recorder()
    codes = {CODE: code(policy(count=10, window_s=60))}
    workers = [
        Alerts("shop", codes, [webhook], metrics, counters=state.counters, look_s=0.2)
        for state in shared
    ]
    with Written(JsonFormatter()) as written:
        for state, alerts in zip(shared, workers, strict=True):
            state.start()
            alerts.start()
        for alerts in workers:
            for _ in range(5):
                alerts.failed(CallFacts(code=CODE), flight_id="")
        until(lambda: webhook.sent)
        for alerts in workers:
            for _ in range(20):
                alerts.failed(CallFacts(code=CODE), flight_id="")
        gevent.sleep(1.5)
        for state, alerts in zip(shared, workers, strict=True):
            alerts.close()
            state.close()
    for store in stores:
        store.close()
    (line,) = read("\n".join(written.lines), "alert")
    assert 10 <= line["count"] <= 50
    assert len(webhook.sent) == 1
    assert json.loads(written.lines[0])["event"] == "alert"


def test_the_shipped_checklist_can_be_watched() -> None:
    codes = load_checklist(Settings(mode="local")).codes
    alerts = Alerts("shop", codes, [], Metrics.off(), counters=LocalCounters())
    with Written(JsonFormatter()) as written:
        for name in codes:
            for _ in range(100):
                alerts.called(CallFacts())
                alerts.failed(CallFacts(code=name), flight_id="")
        alerts.look()
    lines = read("\n".join(written.lines), "alert")
    with_alert = {each.name for each in codes.values() if each.alert}
    counted = {each.name for each in codes.values() if each.alert and each.alert.count}
    assert counted <= {line["code"] for line in lines} <= with_alert
