"""curl, and what a shell sees of it."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.nodes import Pair
from tests.gateway.talking import Chat

pytestmark = pytest.mark.skipif(
    shutil.which("curl") is None, reason="needs the Debian package curl"
)

TEXT = "Grüße, 你好 😀 world. " * 3


def curl(nodes: Pair, chat: Chat, *options: str, **fields: object) -> tuple[int, str]:
    """Exit code and output."""
    done = subprocess.run(
        [
            *("curl", "-sS", "-N", "--max-time", "30", *options),
            *("-H", "Authorization: Bearer token-alice", "-H", "Content-Type: application/json"),
            *("--data-binary", "@-", f"{nodes.a.service.url}/v1/chat/completions"),
        ],
        input=json.dumps({**chat.body, **fields}).encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout.decode()


@pytest.mark.parametrize("option", ["--http1.1", "--http1.0", "--compressed"])
def test_a_stream(nodes: Pair, model: ModelServerProcess, option: str) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=5)])
    code, out = curl(nodes, chat, option, stream=True)
    assert (code, out.endswith("data: [DONE]\n\n")) == (0, True)


def test_h26_a_stream_that_fails_ends_as_it_should(
    nodes: Pair, model: ModelServerProcess
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=5, cut_after_chunks=1, cut="reset")])
    code, out = curl(nodes, chat, stream=True)
    assert code == 0
    *chunks, error, end = out.split("\n\n")
    assert (len(chunks), end) == (2, "")
    assert "error" in json.loads(error.removeprefix("data: "))


def test_h27_a_status_that_a_shell_can_see(nodes: Pair, model: ModelServerProcess) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(status=429, retry_after=7)])
    code, out = curl(nodes, chat, "-f", "-w", "%{http_code} %header{retry-after}", stream=True)
    assert (code, out) == (22, "429 7")
