"""LiteLLM's proxy as the model's service, with mock responses: nobody here wrote it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.installed import installed
from tests.gateway.talking import Chat, Talker
from tests.processes import ROOT, wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service, ask

#: its own environment: it wants other versions than this project
REQUIREMENT = "litellm[proxy]==1.108.7"
KEY = "sk-lite"
SAID = "Grüße, 你好 😀 from a mock."
CONFIG = f"""
model_list:
  - model_name: mocked
    litellm_params: {{model: openai/mock, api_key: none, mock_response: "{SAID}", mock_delay: 0.5}}
  - model_name: limited
    litellm_params: {{model: openai/mock, api_key: none, mock_response: "litellm.RateLimitError"}}
router_settings: {{num_retries: 0}}
general_settings: {{master_key: {KEY}}}
"""

pytestmark = pytest.mark.timeout(600)  # it is installed once


@pytest.fixture(scope="module")
def litellm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The proxy's address."""

    def fetch(folder: Path) -> None:
        venv.create(folder, with_pip=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "-q", REQUIREMENT], check=True, timeout=500)

    recipe = f"{REQUIREMENT} {sys.version}".encode()
    home = installed(ROOT / ".run" / "tests" / "litellm", recipe, fetch)
    folder = tmp_path_factory.mktemp("litellm")
    (folder / "config.yaml").write_text(CONFIG)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    inherited = {name: os.environ[name] for name in os.environ if not name.startswith("FLIGHTSVC")}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(home / "bin" / "python"), str(home / "bin" / "litellm"), *options],
            cwd=folder,
            env={**inherited, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"

    def lives() -> bool:
        assert process.poll() is None, (folder / "log").read_text()
        try:
            return ask(f"{url}/health/liveliness", timeout_s=5).status == 200
        except OSError:
            return False

    try:
        wait_until(lives, 90)
        yield f"{url}/v1"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def service(litellm: str, redis_server: RedisServer) -> Iterator[Service]:
    env = {
        "FLIGHTSVC_REDIS_URL": redis_server.url,
        "FLIGHTSVC_NAMESPACE": "t-" + os.urandom(6).hex(),
        "FLIGHTSVC_PROVIDER": "openai",
        "FLIGHTSVC_OPENAI_BASE_URL": litellm,
        "FLIGHTSVC_OPENAI_API_KEY": KEY,
        "FLIGHTSVC_OPENAI_MODEL": "mocked",
        "FLIGHTSVC_BREAKER_FAILURES": "1000",
    }
    with Service(env, workers=2) as service:
        yield service


def test_callers_share_one_of_its_answers(service: Service) -> None:
    chat = Chat(model="mocked")
    counts: Any = {"stream_options": {"include_usage": True}}
    streams = [Talker(service.url, chat, **counts) for _ in range(6)]
    plain = [Talker(service.url, chat, stream=False) for _ in range(4)]
    for each in [*streams, *plain]:
        assert (each.wait().status, each.text) == (200, SAID)
    assert all(each.done for each in streams)
    ids = {each.chunks[0]["id"] for each in streams} | {each.json()["id"] for each in plain}
    assert len(ids) == 1  # it gives each of its answers an id of its own
    assert plain[0].json()["usage"]["total_tokens"] > 0
    assert streams[0].chunks[-1]["usage"] == plain[0].json()["usage"]


@pytest.mark.parametrize("stream", [True, False])
def test_its_refusals_are_statuses(service: Service, stream: bool) -> None:
    limited = Talker(service.url, Chat(model="limited"), stream=stream).wait()
    assert (limited.status, limited.error["type"]) == (429, "rate_limit_error")
    unknown = Talker(service.url, Chat(model="nobody"), stream=stream).wait()
    assert unknown.status in (400, 404)
    assert "nobody" in unknown.error["message"]


def test_its_models_are_listed(service: Service) -> None:
    listed = service.get("/v1/models").json()["data"]
    assert {each["id"] for each in listed} == {"mocked", "limited"}
