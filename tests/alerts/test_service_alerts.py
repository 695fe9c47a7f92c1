"""The service's alerts, end to end: a failing model, several workers, real channels, one dead."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from gevent.event import Event

from flightsvc.errors import SettingsError
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.settings import load_settings
from flightsvc.settings.alerting import parse_mail_server
from tests.alerts.mail_server import MailServer
from tests.alerts.scene import SECRET, until
from tests.logs.reading import read
from tests.processes import ROOT
from tests.service.gunicorn_master import Master
from tests.support.http_receiver import Answer, HttpReceiver
from tests.support.service import Service
from tests.web.running import openai, path

LIST = """
trips_alert = "none"
[alert.provider_failure_rate]
channels = ["webhook", "wecom", "email", "log"]
count = 4
window_s = 60
"""
ASKED = {"question_number": 1, "question": "Why?", "answer": "Because."}


def test_failures_of_all_workers_wake_somebody_once_and_delay_nobody(tmp_path: Path) -> None:
    checklist = tmp_path / "checklist.toml"
    checklist.write_text(LIST)
    never = Event()
    robot = HttpReceiver(lambda _: Answer(body=b'{"errcode":0}'))
    dead = HttpReceiver(lambda _: Answer(first=never))
    login = f"user:{SECRET}"
    with robot, dead, MailServer(login=login) as mail, ModelServerProcess() as model:
        model.script([{"match": {}, "behave": {"status": 500}}])
        env = {
            **openai(model),
            "FLIGHTSVC_CHECKLIST_FILE": str(checklist),
            "FLIGHTSVC_ALERT_WEBHOOK_URL": f"{dead.url}/hook/{SECRET}",
            "FLIGHTSVC_ALERT_WECOM_URL": f"{robot.url}/send?key={SECRET}",
            "FLIGHTSVC_ALERT_SMTP_URL": f"smtp://{login}@127.0.0.1:{mail.port}",
            "FLIGHTSVC_ALERT_EMAIL_FROM": "alerts@example.com",
            "FLIGHTSVC_ALERT_EMAIL_TO": '["ops@example.com"]',
        }
        with Service(env, workers=3) as service:
            slowest = 0.0
            for number in range(24):
                began = time.monotonic()
                asked = {**ASKED, "answer": f"Answer {number}."}
                assert service.post(path(f"s{number}"), asked).status >= 400
                slowest = max(slowest, time.monotonic() - began)
            until(lambda: robot.received)
            took = mail.took()
            alerts = read(service.log(), "alert")
            until(lambda: dead.received)
            log = service.log()

    assert slowest < 5
    sent = {line["code"] for line in alerts}
    assert len(sent) == len(alerts) == len(robot.received)  # once for each code
    for line in alerts:
        assert line["alert"] == "provider_failure_rate"
        assert line["channels"] == ["webhook", "wecom", "email"]
        assert line["count"] >= 4
    content = robot.received[0].json()["markdown"]["content"]
    assert alerts[0]["code"] in content
    assert alerts[0]["trace_id"] in content
    assert dead.received[0].json()["id"] in {line["alert_id"] for line in alerts}
    assert took["to"] == ["ops@example.com"]
    assert SECRET not in log
    assert "Answer" not in log


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WEBHOOK_URL", f"ftp://host/{SECRET}"),
        ("WEBHOOK_URL", f"https://user:{SECRET}@host/"),
        ("WECOM_URL", f"https:///send?key={SECRET}"),
        ("SMTP_URL", f"smtp://user:{SECRET}@host:port"),
        ("SMTP_URL", f"http://user:{SECRET}@host"),
        ("SMTP_URL", f"smtp://user:{SECRET}@host"),
        ("EMAIL_TO", '["ops@example.com"]'),
    ],
)
def test_what_cannot_work_stops_the_start_and_shows_no_secret(name: str, value: str) -> None:
    master = Master({f"FLIGHTSVC_ALERT_{name}": value, "FLIGHTSVC_MODE": "local"}, cwd=ROOT)
    try:
        assert master.launch().wait() == 1
        assert f"FLIGHTSVC_ALERT_{name}" in master.log()
        assert SECRET not in master.log()
        assert "Traceback" not in master.log()
    finally:
        master.close()


@pytest.mark.parametrize(
    "line",
    [
        f"alert_smtp_url = ['{SECRET}']",
        f"alert_webhook_url = ['{SECRET}']",
        f"alert_wecom_url = ['{SECRET}']",
        f"operator_tokens = ['{SECRET}']",
        f"operator_tokens = {{ '{SECRET}' = 5 }}",
    ],
)
def test_a_value_of_the_wrong_kind_is_not_shown(tmp_path: Path, line: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(line)
    with pytest.raises(SettingsError) as refused:
        load_settings({"FLIGHTSVC_CONFIG": str(file)})
    assert line.split(" ")[0] in str(refused.value)
    assert SECRET not in str(refused.value)


def test_an_operators_token_in_a_name_is_not_shown() -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings({f"FLIGHTSVC_OPERATOR_TOKENS__{SECRET}": "ada"})
    assert "FLIGHTSVC_OPERATOR_TOKENS" in str(refused.value)
    assert SECRET not in str(refused.value)


def test_a_password_may_hold_any_character() -> None:
    password = "p@s/s:w#ö?%"
    server = parse_mail_server(f"smtp://us%40er:{quote(password, safe='')}@host")
    assert (server.user, server.password, server.port) == ("us@er", password, 587)
    assert password not in repr(server)
    assert json.dumps(parse_mail_server("smtps://[::1]").port) == "465"
