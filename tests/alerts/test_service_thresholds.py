"""Counts, rates and flags end to end: two services on one Redis, a failing model, a real receiver.

Each service is one gunicorn worker, so that a test says which of them meets a failure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gevent
import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.alerts.scene import until
from tests.logs.reading import read
from tests.support.http_receiver import HttpReceiver
from tests.support.redis_server import RedisServer
from tests.support.service import Service, ask
from tests.web.running import openai, path

CODE = "PROVIDER_UNAVAILABLE"
ADA = {"Authorization": "Bearer token-ada", "Content-Type": "application/json"}
#: longer than both workers need to hear of each other and to look, in s
QUIET_S = 4.0
#: for one code, and nothing else is told
ONE_CODE = """
trips_alert = "none"
[alert.provider_failure_rate]
channels = ["webhook", "log"]
count = 1
window_s = 60
"""


class Site:
    """Two workers, what fails, and what the receiver got."""

    def __init__(self, workers: list[Service], receiver: HttpReceiver) -> None:
        self.workers = workers
        self.receiver = receiver
        self._asked = 0

    def ask(self, worker: int, *, bad: int = 0, good: int = 0) -> None:
        """Have one worker make calls, one after the other."""
        for answer in ["bad"] * bad + ["good"] * good:
            self._asked += 1
            asked = {"question_number": 1, "question": "Why?", "answer": answer}
            reply = self.workers[worker].post(path(f"s{self._asked}"), asked)
            assert reply.status == (503 if answer == "bad" else 200), reply.body

    @property
    def told(self) -> list[dict[str, Any]]:
        """The alerts that the receiver got."""
        return [each.json() for each in self.receiver.received]

    def stays_at(self, alerts: int) -> None:
        """Nothing further is told."""
        gevent.sleep(QUIET_S)
        assert len(self.told) == alerts, self.told


Make = Callable[[str], Site]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """``make(checklist)``"""
    made: list[Any] = []

    def site(checklist: str) -> Site:
        file = tmp_path / "checklist.toml"
        file.write_text(checklist)
        redis, receiver, model = RedisServer(), HttpReceiver(), ModelServerProcess()
        for each in (redis, receiver, model):
            made.append(each)
            each.__enter__()
        model.script([{"match": {"body_contains": "bad"}, "behave": {"status": 500}}])
        env = {
            **openai(model),
            "FLIGHTSVC_REDIS_URL": redis.url,
            "FLIGHTSVC_NAMESPACE": "thresholds",
            "FLIGHTSVC_CHECKLIST_FILE": str(file),
            "FLIGHTSVC_OPERATOR_TOKENS": '{"token-ada": "ada"}',
            "FLIGHTSVC_ALERT_WEBHOOK_URL": f"{receiver.url}/hook",
        }
        workers = [Service(env, workers=1) for _ in range(2)]
        for worker in workers:
            made.append(worker)
            worker.start()
        return Site(workers, receiver)

    yield site
    for each in reversed(made):
        each.__exit__(None, None, None)


def test_a_count_that_no_worker_reaches_alone_is_told_once_a_window(make: Make) -> None:
    site = make(ONE_CODE.replace("count = 1", "count = 6"))
    site.ask(0, bad=3)
    site.ask(1, bad=2)
    site.stays_at(0)
    site.ask(1, bad=1)
    until(lambda: site.told)
    # and whichever worker fails next, it was told in this window
    site.ask(0, bad=7)
    site.ask(1, bad=7)
    site.stays_at(1)

    (alert,) = site.told
    assert (alert["code"], alert["policy"]) == (CODE, "provider_failure_rate")
    assert (alert["count"], alert["rate"]) == (6, None)
    assert alert["threshold"] == {"count": 6, "rate": None, "window_s": 60}
    assert (alert["stage"], alert["needs_person"]) == ("evaluation", None)
    assert alert["service"] == "thresholds"
    lines = [line for worker in site.workers for line in read(worker.log(), "alert")]
    assert [line["alert_id"] for line in lines] == [alert["id"]]
    (sample,) = [
        line
        for line in read(site.workers[1].log(), "failure")
        if line["flight_id"] == alert["flight_id"]
    ]
    assert sample["trace_id"] == alert["trace_id"]


def test_a_rate_is_a_share_of_the_calls_of_all_workers_and_told_once(make: Make) -> None:
    site = make(ONE_CODE.replace("count = 1", "rate = 0.5\nmin_calls = 10"))
    site.ask(0, bad=4)  # all of them, but they are too few to say anything
    site.stays_at(0)
    site.ask(1, good=6)
    site.ask(0, good=1)  # 4 of 11
    site.stays_at(0)
    site.ask(1, bad=3)  # 7 of 14
    until(lambda: site.told)
    site.ask(0, bad=3)
    site.stays_at(1)

    (alert,) = site.told
    assert (alert["code"], alert["count"], alert["rate"]) == (CODE, 7, 0.5)
    assert alert["threshold"] == {"count": None, "rate": 0.5, "window_s": 60}
    assert "50.0% of all calls" in alert["summary"]


FLAG = """
trips_after = 4
[alert.needs_person]
channels = ["webhook", "log"]
window_s = 1
[alert.provider_failure_rate]
channels = ["log"]
count = 1000
"""


def test_a_module_that_needs_a_person_is_told_once_and_again_after_one_came(make: Make) -> None:
    site = make(FLAG)
    site.ask(0, bad=2)
    site.ask(1, bad=2)
    until(lambda: site.told)
    site.ask(0, bad=4)
    site.stays_at(1)

    (alert,) = site.told
    assert (alert["policy"], alert["severity"]) == ("needs_person", "P1")
    assert (alert["needs_person"], alert["paused"]) == ("stage:evaluation", False)
    assert alert["code"] == CODE
    assert alert["summary"] == "4 failures in a row"
    assert alert["about_zh"]
    (line,) = [line for worker in site.workers for line in read(worker.log(), "alert")]
    assert (line["needs_person"], line["alert"]) == ("stage:evaluation", "needs_person")

    acked = ask(f"{site.workers[0].url}/v1/modules/evaluation/ack", "POST", headers=ADA)
    assert acked.status == 200
    gevent.sleep(1)
    site.ask(1, bad=4)
    until(lambda: len(site.told) == 2)


def test_where_the_list_pauses_the_module_the_alert_says_so(make: Make) -> None:
    site = make(FLAG + f"[codes.{CODE}]\npauses = true\n")
    site.ask(0, bad=4)
    until(lambda: site.told)
    (alert,) = site.told
    assert alert["paused"] is True
    assert "it is paused until somebody resumes it" in alert["summary"]
    shown = ask(f"{site.workers[1].url}/v1/modules/evaluation", headers=ADA).json()
    assert shown["paused"]["automatic"] is True
    assert shown["needs_person"]["failures"] == 4
    assert json.dumps(alert, ensure_ascii=False).count("AI 暂时出错") == 0  # that is for users
