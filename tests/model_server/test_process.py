"""The command: start, address, and an end by signal, by standard input, or by a wrong script."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

import flightsvc
from flightsvc.model_server.cli import main
from flightsvc.model_server.process import ModelServerProcess

ROOT = str(Path(flightsvc.__file__).parent.parent)


class Command:
    """The command in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flightsvc", "model-server", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": ROOT},
        )

    def address(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().rpartition(" ")[2].strip()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def commands() -> Iterator[list[Command]]:
    started: list[Command] = []
    yield started
    for command in started:
        command.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_within_a_second_also_in_the_middle_of_calls(
    commands: list[Command], tmp_path: Path, number: signal.Signals
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"behave": {"never_answer": True}}]))
    commands.append(Command("--script", str(script)))
    pool = urllib3.PoolManager(retries=False)
    url = commands[0].address() + "/v1/chat/completions"
    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        pool.request("POST", url, json={"messages": []}, timeout=0.2)
    started = time.monotonic()
    commands[0].process.send_signal(number)
    assert commands[0].process.wait(10) == 0
    assert time.monotonic() - started < 1


def test_the_port_file_says_where_it_listens(commands: list[Command], tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    commands.append(Command("--bind", "127.0.0.1:0", "--port-file", str(port_file)))
    address = commands[0].address()
    assert address == f"http://127.0.0.1:{port_file.read_text().strip()}"
    assert os.listdir(tmp_path) == ["port"]
    assert urllib3.request("GET", address + "/_stats").json()["calls"] == 0


def test_a_reset_returns_to_the_script_it_began_with(
    commands: list[Command], tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"default": {"answer": "echo"}}')
    commands.append(Command("--script", str(script)))
    url = commands[0].address()

    def say() -> int:
        messages = {"messages": [{"role": "user", "content": "hi"}]}
        return urllib3.request("POST", url + "/v1/chat/completions", json=messages).status

    urllib3.request("PUT", url + "/_script", json={"default": {"status": 418}})
    assert say() == 418
    urllib3.request("POST", url + "/_reset")
    assert say() == 200
    assert urllib3.request("GET", url + "/_stats").json()["calls"] == 1


def test_it_ends_with_its_standard_input_if_wanted(commands: list[Command]) -> None:
    commands.append(Command("--stop-with-stdin"))
    commands[0].address()
    assert commands[0].process.stdin is not None
    commands[0].process.stdin.close()
    commands[0].process.stdin = None
    assert commands[0].process.wait(10) == 0


def test_a_wrong_script_stops_the_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"behave": {"oops": 1}}]')
    assert main(["--script", str(script)]) == 1
    assert "rules.0.behave.oops" in capsys.readouterr().err
    assert main(["--script", str(tmp_path / "missing.json")]) == 1
    assert "missing.json" in capsys.readouterr().err


@pytest.mark.parametrize("bind", ["8000", "127.0.0.1:", "127.0.0.1:http", ":1", "h:70000"])
def test_a_wrong_address_stops_the_start(bind: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--bind", bind])
    assert "host:port" in capsys.readouterr().err


def test_an_address_in_use_stops_the_start(
    commands: list[Command], capsys: pytest.CaptureFixture[str]
) -> None:
    commands.append(Command())
    assert main(["--bind", commands[0].address().removeprefix("http://")]) == 1
    assert "model-server: " in capsys.readouterr().err


def test_the_helper_leaves_no_process_behind() -> None:
    with ModelServerProcess([{"behave": {"answer": "text", "text": "hi"}}]) as server:
        answer = urllib3.request(
            "POST", server.base_url + "/chat/completions", json={"messages": []}
        )
        assert answer.json()["choices"][0]["message"]["content"] == "hi"
        pid = server.pid
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.pid


def test_the_helper_ends_its_process_if_the_first_script_is_wrong() -> None:
    server = ModelServerProcess([{"behave": {"oops": 1}}])
    with pytest.raises(ValueError, match="oops"):
        server.start()
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.pid


def test_importing_it_patches_nothing() -> None:
    code = (
        "import flightsvc.model_server.cli, flightsvc.model_server.process; "
        "from gevent import monkey; assert not monkey.saved, list(monkey.saved)"
    )
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ROOT}, check=True)
