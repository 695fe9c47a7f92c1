"""The programs and commands that README.md and docs/ print really run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import gevent
import pytest
from flask import Flask
from gevent.event import Event

from flightsvc import FlightContext, FlightKey, SingleFlight
from flightsvc.app import close_worker
from flightsvc.demo.samples import IDENTICAL
from flightsvc.interview.evaluation import EvaluationInput
from flightsvc.settings import load_settings
from tests.processes import ROOT
from tests.readme_pages import block, blocks, page
from tests.service.gunicorn_master import Master
from tests.support.redis_server import RedisServer
from tests.support.service import ask, post_json

REDIS_URL = "redis://127.0.0.1:6379/0"


def run_program(code: str, redis: RedisServer, folder: Path) -> list[str]:
    """Run a program with the server's address in the place of the printed one; what it prints."""
    assert REDIS_URL in code
    script = folder / "program.py"
    script.write_text(code.replace(REDIS_URL, redis.url), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_the_library_program_runs(own_redis: RedisServer, tmp_path: Path) -> None:
    printed = run_program(block(page("README.md"), "python", "from_url"), own_redis, tmp_path)

    roles = [line.split(" ", 1)[0] for line in printed]
    rest = {line.split(" ", 1)[1] for line in printed}
    assert roles == ["owner", "follower"]
    assert len(rest) == 1


def test_the_library_page_runs_from_top_to_bottom(own_redis: RedisServer, tmp_path: Path) -> None:
    *program, end = blocks(page("docs/library.md"), "python")
    check = """
callers = [gevent.spawn(score, "s-1", answer) for answer in (" fine ", "fine")]
print([caller.get() for caller in callers], len({caller.get()["score"] for caller in callers}))
callers = [gevent.spawn(judged, "s-1", "fine") for _ in range(5)]
print([caller.get() for caller in callers])
counted = flights.metrics.snapshot()
print(sum(count for name, count in counted.items() if name.startswith("flight.calls.scoring")))
"""
    printed = run_program("\n".join([*program, check, end]), own_redis, tmp_path)

    assert printed[1] == str([{"score": 4}] * 5)
    assert float(printed[2]) == 2


def test_the_blueprint_program_serves(tmp_path: Path) -> None:
    readme = page("README.md")
    (tmp_path / "host.py").write_text(block(readme, "python", "FlightSvc(app)"), encoding="utf-8")
    command = shlex.split(block(readme, "sh", "host:app"))
    assert command[:2] == ["gunicorn", "-c"]
    config, app = command[2:]
    env = {"PYTHONPATH": str(ROOT), "FLIGHTSVC_SIMULATED_LATENCY_MS": "10"}

    with Master(env, config=config, app=app, cwd=tmp_path) as host:
        asked = json.loads(IDENTICAL.body)
        judged = post_json(host.url + "/ai/v1/interviews/s-1/evaluations", asked)
        shown = ask(host.url + "/ai/v1/flights/" + judged.headers["flight-id"])
        text = b"A long text."
        first, again = (ask(host.url + "/summaries/7", "POST", body=text) for _ in range(2))

    assert (judged.status, shown.status) == (200, 200)
    assert shown.json()["state"] == "SUCCEEDED"
    assert (first.headers["flight-role"], first.json()) == ("owner", {"summary": "A long text."})
    assert again.headers["flight-role"] in ("replay", "l1")


def test_the_mounted_app_asks_who_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"MODE": "local", "SIMULATED_LATENCY_MS": "0"}.items():
        monkeypatch.setenv(f"FLIGHTSVC_{name}", value)
    host: dict[str, Any] = {"__name__": "host"}
    exec(block(page("docs/mounting.md"), "python", "tenant_of"), host)
    app: Flask = host["create_app"]()
    client = app.test_client()
    asked = json.loads(IDENTICAL.body)

    before = client.post("/ai/v1/interviews/s-1/evaluations", json=asked)
    client.post("/login/acme")
    after = client.post("/ai/v1/interviews/s-1/evaluations", json=asked)
    old = client.post("/old/v1/interviews/s-1/evaluations", json=asked)
    close_worker(app)

    assert [reply.status_code for reply in (before, after, old)] == [401, 200, 200]
    assert old.headers["Flight-Role"] == "l1"


def rights() -> list[str]:
    return shlex.split(block(page("docs/redis.md"), "text", "ACL SETUSER flightsvc"))


def test_the_rights_suffice(own_redis: RedisServer) -> None:
    client = own_redis.client()
    client.execute_command(*rights())
    user, password = rights()[2], rights()[4].removeprefix(">")
    url = f"unix://{user}:{password}@{own_redis.socket_path}"
    first, second = (
        SingleFlight.from_url(url, namespace="shop", heartbeat_ms=50, takeover_detect_ms=3_000)
        for _ in range(2)
    )
    began = Event()

    def call(ctx: FlightContext) -> int:
        began.set()
        gevent.sleep(0.3)  # some heartbeats
        return ctx.attempt

    key = FlightKey("scoring", "s-1")
    owner = gevent.spawn(first.run, key, call)
    assert began.wait(10)
    followed, owned = second.run(key, call), owner.get()
    view = first.inspect(key.flight_id)
    first.close()
    second.close()

    assert (owned.role, followed.role) == ("owner", "follower")
    assert view is not None
    assert client.execute_command("ACL", "LOG") == []


def test_the_rights_are_those_that_the_scripts_need() -> None:
    given = {word.removeprefix("+").partition("|")[0] for word in rights() if word[0] == "+"}
    scripts = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "lua").glob("*.lua"))
    called = {word.lower() for word in re.findall(r"redis\.p?call\('(\w+)'", scripts)}

    assert called <= given
    assert given - called == {
        "info",
        "eval",
        "evalsha",
        "xread",
        "select",
        "client",
        "cluster",
        "asking",
    }


def test_the_settings_of_the_service_are_valid() -> None:
    lines = block(page("README.md"), "sh", "export").splitlines()
    exported = dict(shlex.split(line)[1].split("=", 1) for line in lines if "export" in line)

    settings = load_settings(exported)

    assert settings.provider == "openai"
    assert dict(settings.api_tokens) == {"a-long-random-token": "acme"}


def test_the_curl_line_is_a_valid_request() -> None:
    (command,) = [each for each in blocks(page("README.md"), "sh") if each.startswith("curl ")]
    words = shlex.split(command.replace("\\\n", " "))

    EvaluationInput.model_validate_json(words[words.index("-d") + 1])
