"""The webhook and the WeChat Work robot against a real receiver: good, slow, dead, refusing."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent
import pytest
from gevent.event import Event

from flightsvc.alerts.channels import (
    WECOM_BYTES,
    Channel,
    NotSent,
    WebhookChannel,
    WeComChannel,
    wecom_markdown,
)
from tests.alerts.scene import SECRET, alert
from tests.support.http_receiver import Answer, HttpReceiver

CHANNELS = [WebhookChannel, WeComChannel]
DOCS = Path(__file__).parents[2] / "docs" / "alerts.md"
OK = Answer(body=b'{"errcode":0,"errmsg":"ok"}')


def refused(channel: Channel, timeout_s: float = 5) -> NotSent:
    with pytest.raises(NotSent) as failed:
        channel.send(alert(), timeout_s)
    shown = f"{failed.value!r} {failed.value.__cause__!r} {failed.value.__suppress_context__}"
    assert SECRET not in shown
    return failed.value


def test_the_webhook_gets_the_documented_json() -> None:
    with HttpReceiver() as receiver:
        WebhookChannel(f"{receiver.url}/hook?token={SECRET}").send(sent := alert(), 5)
    (got,) = receiver.received
    assert got.path == f"/hook?token={SECRET}"
    assert got.headers["content-type"] == "application/json; charset=utf-8"
    document = got.json()
    assert document == {
        "version": 1,
        "event": "alert",
        "id": sent.id,
        "time": sent.time.isoformat(timespec="milliseconds"),
        "service": "shop",
        "severity": "P2",
        "policy": "timeouts",
        "code": "AI_INFRA_TIMEOUT",
        "level": "L1",
        "cause": "infrastructure",
        "summary": "12 failures within 60 s (alert from 3)",
        "about_en": "The model took too long.",
        "about_zh": "模型超时",
        "needs_person": None,
        "paused": False,
        "count": 12,
        "rate": None,
        "threshold": {"count": 3, "rate": None, "window_s": 60},
        "stage": "evaluation",
        "trace_id": "ab" * 16,
        "flight_id": "cd" * 16,
        "fingerprint": None,
    }


def test_the_page_names_every_field_of_the_json() -> None:
    page = DOCS.read_text(encoding="utf-8")
    example = json.loads(re.search(r"```json\n(\{.*?\n\})\n```", page, re.DOTALL)[1])  # type: ignore[index]
    document = alert().document()
    assert example.keys() == document.keys()
    assert example["threshold"].keys() == document["threshold"].keys()


def test_the_robot_gets_markdown_and_must_mean_its_answer() -> None:
    with HttpReceiver(lambda _: OK) as receiver:
        url = f"{receiver.url}/cgi-bin/webhook/send?key={SECRET}"
        WeComChannel(url).send(alert(), 5)
    (got,) = receiver.received
    message = got.json()
    assert got.path.endswith(SECRET)
    assert message["msgtype"] == "markdown"
    content = message["markdown"]["content"]
    assert content.startswith('<font color="warning">**[P2] AI_INFRA_TIMEOUT (shop)**</font>\n')
    assert "> 含义: 模型超时" in content
    assert f"> trace_id: {'ab' * 16}" in content


def test_a_long_text_is_cut_to_what_the_robot_takes() -> None:
    long = alert(name="告" * 3_000)
    assert len(wecom_markdown(long).encode()) > WECOM_BYTES
    with HttpReceiver(lambda _: OK) as receiver:
        WeComChannel(receiver.url).send(long, 5)
    content = receiver.received[0].json()["markdown"]["content"]
    assert WECOM_BYTES - 4 < len(content.encode()) <= WECOM_BYTES


@pytest.mark.parametrize(
    ("body", "passing", "says"),
    [
        (b'{"errcode":93000,"errmsg":"invalid webhook url"}', False, "errcode 93000"),
        (b'{"errcode":45009,"errmsg":"api freq out of limit"}', True, "errcode 45009"),
        (b'{"errcode":-1,"errmsg":"system busy"}', True, "errcode -1"),
        (b'{"errcode":"0"}', False, "errcode that is no number"),
        (b'{"errmsg":"ok"}', True, "its answer holds no errcode"),
        (b"[1]", True, "its answer holds no errcode"),
        (b"<html>", True, "its answer holds no errcode"),
        (b"", True, "its answer holds no errcode"),
        (b"[" * 60_000, True, "its answer holds no errcode"),
    ],
)
def test_the_robots_200_can_be_a_failure(body: bytes, passing: bool, says: str) -> None:
    with HttpReceiver(lambda _: Answer(body=body)) as receiver:
        failure = refused(WeComChannel(f"{receiver.url}?key={SECRET}"))
    assert (str(failure), failure.passing) == (says, passing)


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize(
    ("status", "passing"),
    [
        ("500 Oops", True),
        ("503 Busy", True),
        ("429 Slow down", True),
        ("404 Not Found", False),
        ("401 Unauthorized", False),
        ("302 Found", False),
    ],
)
def test_other_answers_are_failures(
    channel: Callable[[str], Channel], status: str, passing: bool
) -> None:
    headers = {"Retry-After": "7", "Location": "/elsewhere"}
    with HttpReceiver(lambda _: Answer(status, headers=headers)) as receiver:
        failure = refused(channel(f"{receiver.url}?key={SECRET}"))
    assert str(failure) == f"HTTP {status[:3]}"
    assert (failure.passing, failure.retry_after_s) == (passing, 7)
    assert len(receiver.received) == 1


@pytest.mark.parametrize("channel", CHANNELS)
def test_nobody_there(channel: Callable[[str], Channel]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert refused(channel(f"http://127.0.0.1:{port}/{SECRET}")).passing
    assert refused(channel(f"http://no-such-host.invalid/{SECRET}")).passing
    assert refused(channel(f"https://127.0.0.1:{port}/{SECRET}")).passing


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_silent_one_is_left(channel: Callable[[str], Channel]) -> None:
    go = Event()
    with HttpReceiver(lambda _: Answer(first=go)) as receiver:
        began = time.monotonic()
        assert refused(channel(f"{receiver.url}/{SECRET}"), timeout_s=0.2).passing
        assert time.monotonic() - began < 5
        go.set()


def test_one_that_does_not_speak_http_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def babble() -> None:
            connection, _ = server.accept()
            connection.recv(100)
            connection.sendall(b"+OK POP3 ready\r\n\r\n")
            connection.close()

        talking = gevent.spawn(babble)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/{SECRET}"
        assert refused(WebhookChannel(url)).passing
        talking.kill()


def test_an_answer_without_end_does_not_matter_to_the_webhook() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> Any:
            connection, _ = server.accept()
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            gevent.sleep(60)

        dripping = gevent.spawn(drip)
        WebhookChannel(f"http://127.0.0.1:{server.getsockname()[1]}/").send(alert(), 2)
        dripping.kill()
