"""Looking at processes from outside: whether they live, what they hold, when something is so."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not Path("/proc/self").exists()


def wait_until(true: Callable[[], object], within_s: float = 15.0) -> None:
    """Look again and again; an assertion error if it does not come true."""
    until = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < until, f"not so within {within_s} s"
        time.sleep(0.02)


def run_python(
    code: str, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Another Python that runs this code, its output readable line by line."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(path: str, command: str) -> bytes:
    """Send one inline command to the server behind a unix socket; its answer as it stands."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        connection.connect(path)
        connection.sendall(command.encode() + b"\r\n")
        return connection.recv(65536)


def answers(path: str) -> bool:
    """Whether a server behind a unix socket is up."""
    try:
        return ask(path, "PING") == b"+PONG\r\n"
    except OSError:
        return False
