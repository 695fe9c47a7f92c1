"""Two services of two workers each, real gunicorn: one operator's word reaches all four."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gevent
import pytest

from flightsvc.store.watch import LOOK_S
from tests.processes import ROOT, wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Reply, Service, ask

ANNA = {"Authorization": "Bearer token-anna", "Content-Type": "application/json"}
FLIGHTSVC = str(Path(sys.executable).with_name("flightsvc"))
ASKED = {"question_number": 1, "question": "What is a lease?", "answer": "A lock that ends."}


class Site(NamedTuple):
    services: tuple[Service, Service]
    redis: RedisServer
    env: dict[str, str]

    def pids(self) -> set[int]:
        return {pid for service in self.services for pid in service.worker_pids()}

    def put(self, module: str, reason: str) -> Reply:
        body = json.dumps({"reason": reason}).encode()
        url = f"{self.services[0].url}/v1/modules/{module}"
        return ask(url, "PUT", body=body, headers=ANNA, timeout_s=10)

    def resume(self, module: str) -> Reply:
        url = f"{self.services[1].url}/v1/modules/{module}"
        return ask(url, "DELETE", headers=ANNA, timeout_s=10)

    def command(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """``flightsvc module …`` as an operator types it."""
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith("FLIGHTSVC_")
        }
        return subprocess.run(
            [FLIGHTSVC, "module", *words],
            env={**clean, **self.env, **env},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with RedisServer() as redis:
        shared = {"FLIGHTSVC_REDIS_URL": redis.url, "FLIGHTSVC_NAMESPACE": "site"}
        env = {
            **shared,
            "FLIGHTSVC_OPERATOR_TOKENS": json.dumps({"token-anna": "anna"}),
            "FLIGHTSVC_SIMULATED_LATENCY_MS": "10",
        }
        one, two = (Service(env, workers=2, app="tests.shared.watched:app") for _ in range(2))
        with one, two:
            site = Site((one, two), redis, shared)
            wait_until(lambda: len(site.pids()) == 4)
            yield site


def sample(site: Site, stage: str, seconds: float) -> list[tuple[float, int, str | None]]:
    """When which worker knew what, asked again and again."""
    found: list[tuple[float, int, str | None]] = []
    until = time.monotonic() + seconds

    def go_on(service: Service) -> None:
        while time.monotonic() < until:
            said: dict[str, Any] = service.get(f"/knows/{stage}/simulated").json()
            found.append((time.monotonic(), said["pid"], said["reason"]))

    gevent.joinall([gevent.spawn(go_on, each) for each in site.services for _ in range(3)])
    return found


def test_all_workers_of_two_masters_know_within_a_second(site: Site) -> None:
    paused = site.put("evaluation", "the model talks nonsense")
    said_at = time.monotonic()
    seen = sample(site, "evaluation", 3.0)

    assert paused.status == 200
    late = [(pid, reason) for at, pid, reason in seen if at - said_at > 1.0]
    assert {pid for pid, _ in late} == site.pids()
    assert {reason for _, reason in late} == {"the model talks nonsense"}

    assert site.resume("evaluation").status == 200
    said_at = time.monotonic()
    seen = sample(site, "evaluation", 3.0)
    late = [(pid, reason) for at, pid, reason in seen if at - said_at > 1.0]
    assert {pid for pid, _ in late} == site.pids()
    assert {reason for _, reason in late} == {None}


def knows(site: Site, reason: str | None) -> None:
    """Until every worker has been heard to know it."""
    heard: dict[int, str | None] = {}

    def ask_all() -> bool:
        for service in site.services:
            for _ in range(4):
                said = service.get("/knows/chat/simulated").json()
                heard[said["pid"]] = said["reason"]
        return set(heard) == site.pids() and set(heard.values()) == {reason}

    wait_until(ask_all)


def test_the_command_pauses_lists_and_resumes(site: Site) -> None:
    paused = site.command("pause", "chat", "--reason", "too slow 太慢", "--by", "bert")
    assert (paused.returncode, paused.stdout) == (0, "stage:chat is paused.\n"), paused.stderr
    knows(site, "too slow 太慢")

    listed = site.command("list")
    line = next(line for line in listed.stdout.splitlines() if line.startswith("stage:chat "))
    assert " paused since 2" in line
    assert line.endswith(" by bert: too slow 太慢")
    assert listed.stdout.count("takes calls") == len(listed.stdout.splitlines()) - 1
    as_json = json.loads(site.command("list", "--json").stdout)
    (told,) = (module for module in as_json["modules"] if module["paused"])
    assert told == site.services[0].get("/v1/modules/chat", headers=ANNA).json()

    resumed = site.command("resume", "chat")
    again = site.command("resume", "chat")
    assert (resumed.returncode, resumed.stdout) == (0, "stage:chat takes calls again.\n")
    assert (again.returncode, again.stdout) == (0, "stage:chat was not paused.\n")
    assert (paused.stderr, listed.stderr, resumed.stderr) == ("", "", "")
    knows(site, None)


def test_the_command_rolls_back_acknowledges_and_names_who(site: Site) -> None:
    assert site.command("roll-back", "chat", "--reason", "drift").returncode == 0
    listed = site.command("list").stdout
    assert re.search(r"^stage:chat +rolled back since 2", listed, re.MULTILINE)
    assert f"@{os.uname().nodename}: drift" in listed
    assert site.command("restore", "chat").stdout == "stage:chat asks its model again.\n"
    assert site.command("ack", "chat").stdout == "stage:chat needed nobody.\n"
    assert "rolled back" not in site.command("list").stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("pause", "evaluaton", "--reason", "x"), "did you mean stage:evaluation?"),
        (("pause", "chat", "--reason", " "), "reason: write 1 to 500 printable characters."),
        (("pause", "chat"), "--reason"),
        (("roll-back", "openai", "--reason", "x"), "only a stage has"),
        ((), "action"),
    ],
)
def test_a_wrong_command_changes_nothing(site: Site, words: tuple[str, ...], says: str) -> None:
    done = site.command(*words)

    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_says_that_redis_is_out_of_reach(site: Site) -> None:
    gone = {"FLIGHTSVC_REDIS_URL": "redis://user:s3cret@127.0.0.1:1/0"}
    for words in (("list",), ("pause", "chat", "--reason", "x"), ("resume", "chat")):
        done = site.command(*words, **gone)
        assert (done.returncode, done.stdout) == (1, "")
        assert "Redis is out of reach" in done.stderr
        assert "Nothing was changed." in done.stderr
        assert "s3cret" not in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"FLIGHTSVC_REDIS_URL": ""}, "use /v1/modules"),
        ({"FLIGHTSVC_REDIS_URL": "", "FLIGHTSVC_MODE": "local"}, "FLIGHTSVC_MODE is local"),
        ({"FLIGHTSVC_REDIS_TIMEOUT": "1"}, "FLIGHTSVC_REDIS_TIMEOUT"),
    ],
)
def test_the_command_says_which_setting_is_wrong(
    site: Site, env: dict[str, str], says: str
) -> None:
    done = site.command("list", **env)

    assert (done.returncode, done.stdout) == (1, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_frozen_redis_blocks_nobody_and_a_pause_holds(site: Site) -> None:
    assert site.put("openai", "x").status == 200
    url = f"{site.services[0].url}/knows/chat/openai"
    wait_until(lambda: [ask(url).json()["reason"] for _ in range(8)] == ["x"] * 8)
    gevent.sleep(2 * LOOK_S)  # one worker may have answered all of them: now each has looked
    site.redis.freeze()
    try:
        gevent.sleep(1)  # every worker has met it
        slowest = 0.0
        for _ in range(40):
            began = time.monotonic()
            assert ask(url).json()["reason"] == "x"
            slowest = max(slowest, time.monotonic() - began)
        answers = [
            service.post(f"/v1/interviews/s{number}/evaluations", ASKED)
            for number, service in enumerate(site.services * 3)
        ]
        done = site.command("list")
    finally:
        site.redis.thaw()

    assert slowest < 0.2
    assert [reply.status for reply in answers] == [200] * 6
    assert done.returncode == 1
    assert "Redis is out of reach" in done.stderr
    wait_until(lambda: site.resume("openai").status == 200)
