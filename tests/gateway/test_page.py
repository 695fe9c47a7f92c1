"""The programs that docs/gateway.md prints really run, and what it says of settings is so."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stdout

import pytest

from flightsvc.settings import Settings
from tests.gateway.test_client_openai_node import pytestmark as needs_node
from tests.gateway.test_client_openai_node import sdk as sdk  # a fixture
from tests.readme_pages import block, page
from tests.support.service import Service

PAGE = page("docs/gateway.md")
PRINTED = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """With an embedded Valkey and a simulated model, as `make run` starts it."""
    env = {
        "FLIGHTSVC_SIMULATED_LATENCY_MS": "100",
        "FLIGHTSVC_API_TOKENS": '{"a-long-random-token": "acme"}',
    }
    with Service(env) as service:
        yield service


@pytest.mark.parametrize("word", ["import OpenAI", "import ChatOpenAI"])
def test_the_python_programs_run(service: Service, word: str) -> None:
    program = block(PAGE, "python", word)
    assert PRINTED in program
    with redirect_stdout(io.StringIO()) as out:
        exec(program.replace(PRINTED, service.url), {"__name__": "program"})
    assert "no model was asked" in out.getvalue()


def test_the_curl_line_runs(service: Service) -> None:
    line = block(PAGE, "sh", "curl").replace("\\\n", " ").replace(PRINTED, service.url)
    done = subprocess.run(shlex.split(line), capture_output=True, timeout=60, check=True)
    assert done.stdout.endswith(b"data: [DONE]\n\n")


@needs_node[0]
def test_the_javascript_program_runs(service: Service, sdk: str) -> None:
    program = block(PAGE, "js", "OpenAI").replace(PRINTED, service.url)
    done = subprocess.run(
        ["node", "--input-type=module"],
        input=program.encode(),
        cwd=sdk,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert b"no model was asked" in done.stdout


def test_the_page_and_the_settings_agree() -> None:
    settings = Settings(mode="local")
    for name in settings.gateway_ignored_fields:
        assert f"`{name}`" in PAGE
    assert f"({settings.gateway_head_after_ms // 1000} s)" in PAGE
    assert f"({settings.gateway_keep_alive_ms // 1000} s)" in PAGE
    assert f"({settings.stage('chat').result_ttl_s:.0f} s)" in PAGE
    assert f"({settings.gateway_max_body_bytes // 2**20} MB" in PAGE
    assert settings.stage("chat").abandon
    example = json.loads(block(PAGE, "sh", "curl").partition("-d '")[2].rpartition("'")[0])
    assert example["stream"] is True
