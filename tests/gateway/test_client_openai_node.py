"""The `openai` SDK for Node, as its users use it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import gevent
import pytest
from gevent import subprocess as cooperative

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.nodes import Pair
from tests.gateway.installed import installed
from tests.gateway.talking import MODEL, Chat
from tests.gateway.test_client_openai_python import FUNCTION, tool_events
from tests.processes import ROOT

pytestmark = [
    pytest.mark.skipif(
        not (shutil.which("node") and shutil.which("npm")),
        reason="needs the Debian packages nodejs and npm",
    ),
    pytest.mark.timeout(300),  # the package is fetched once
]

TEXT = "Grüße, 你好 😀 world. " * 3
SOURCE = Path(__file__).with_name("node")


@pytest.fixture(scope="module")
def sdk() -> Path:
    """A folder with the client and the SDK, fetched once a checkout."""

    def fetch(folder: Path) -> None:
        for name in ("package.json", "client.mjs"):
            shutil.copy(SOURCE / name, folder)
        subprocess.run(
            ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"],
            cwd=folder,
            check=True,
            timeout=240,
        )

    sources = [(SOURCE / name).read_bytes() for name in ("package.json", "client.mjs")]
    return installed(ROOT / ".run" / "tests" / "openai-node", b"".join(sources), fetch)


def node(sdk: Path, nodes: Pair, number: int, how: str, body: Any) -> Any:
    """What the client says of one way to ask."""
    url = f"{nodes.nodes[number].service.url}/v1"
    process = cooperative.Popen(
        ["node", "client.mjs", url, "token-alice"],
        cwd=sdk,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    out, _ = process.communicate(json.dumps({"how": how, "body": body}).encode(), timeout=60)
    return json.loads(out)


def test_streams_and_plain_calls_share_one(
    sdk: Path, nodes: Pair, model: ModelServerProcess
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=5, gate="go")])
    running = {
        (how, number): gevent.spawn(node, sdk, nodes, number, how, chat.body)
        for how in ("plain", "stream", "helper")
        for number in (0, 1)
    }
    model.until(open_calls=1)
    gevent.sleep(1)
    model.open_gate("go")
    said = {key: each.get() for key, each in running.items()}
    for (how, _), each in said.items():
        assert (each["text"] if how == "stream" else each["message"]["content"]) == chat.text
    assert len({each["id"] for each in said.values()}) == 1
    assert said["stream", 0]["usage"]["total_tokens"] > 0
    assert model.stats()["by_rule"][chat.mark] == 1


def test_tools(sdk: Path, nodes: Pair, model: ModelServerProcess) -> None:
    chat = Chat(tools=[{"type": "function", "function": FUNCTION}])
    model.script([chat.rule(events=tool_events())])
    for how in ("helper", "plain"):
        (call,) = node(sdk, nodes, 1, how, chat.body)["message"]["tool_calls"]
        assert call["id"] == "call_1"
        assert call["function"]["arguments"] == '{"city": "Köln"}'


@pytest.mark.parametrize("how", ["plain", "stream"])
def test_errors(sdk: Path, nodes: Pair, model: ModelServerProcess, how: str) -> None:
    limited, cut = Chat(TEXT), Chat(TEXT)
    model.script([limited.rule(status=429, retry_after=7), cut.rule(cut_after_chunks=1)])
    told = node(sdk, nodes, 0, how, limited.body)
    assert (told["error"], told["status"], told["retryAfter"]) == ("RateLimitError", 429, "7")
    told = node(sdk, nodes, 0, how, cut.body)
    if how == "stream":
        assert (told["error"], told["code"]) == ("APIError", "provider_unreachable")
    else:
        assert (told["error"], told["status"]) == ("InternalServerError", 503)


def test_models(sdk: Path, nodes: Pair) -> None:
    assert node(sdk, nodes, 0, "models", {}) == [MODEL]
