"""Redis-compatible servers on TCP ports of 127.0.0.1, of which topologies are made."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

#: below the ports that outgoing connections take: a server must find its port free when it restarts
PORTS = range(11_000, 32_000)
QUOTES = '""'
_given: set[int] = set()
#: no data is kept, and a replica is fed at once
USUAL = {
    "bind": "127.0.0.1",
    "save": "",
    "appendonly": "no",
    "repl-diskless-sync": "yes",
    "repl-diskless-sync-delay": "0",
}


def free_port() -> int:
    """A port that nobody listens on, and that was not given away before."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        with socket.socket() as trial:
            if port in _given:
                continue
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            _given.add(port)
            return port


class RedisNode:
    """One server process.

    :param folder: its own; made if it is not there.
    :param config: its configuration, beside :data:`USUAL`; several values of a name as a list.
    :param sentinel: it is a Sentinel.
    :param tls: options of a client that speaks TLS; None for none.
    """

    def __init__(
        self,
        program: str,
        folder: Path,
        config: Mapping[str, str | list[str]],
        *,
        sentinel: bool = False,
        tls: Mapping[str, Any] | None = None,
    ) -> None:
        self.port = free_port()
        self._program = program
        self._folder = folder
        self._sentinel = sentinel
        self._tls = tls
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        port = {"port": "0", "tls-port": str(self.port)} if tls else {"port": str(self.port)}
        usual = {"bind": "127.0.0.1"} if sentinel else USUAL
        self.configure({**usual, **port, "dir": str(folder), **config})

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def client(self, timeout_s: float = 2.0) -> Any:
        """A plain client for looking from outside, at this server alone."""
        return redis.Redis(
            host="127.0.0.1",
            port=self.port,
            protocol=2,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),
            **({"ssl": True, **self._tls} if self._tls else {}),
        )

    def start(self) -> None:
        """Start it; :meth:`await_answer` says when it is up."""
        words = [self._program, str(self._folder / "conf")]
        self._process = subprocess.Popen(
            [*words, "--sentinel"] if self._sentinel else words,
            stdin=subprocess.DEVNULL,
            stdout=(self._folder / "log").open("ab"),
            stderr=subprocess.STDOUT,
        )

    def await_answer(self, within_s: float = 10.0) -> None:
        """Wait until it answers."""
        until = time.monotonic() + within_s
        while True:
            try:
                self.client().ping()
                return
            except redis.ConnectionError:
                assert self._process is not None
                assert self._process.poll() is None, f"it ended at once: {self.log()[-500:]}"
                assert time.monotonic() < until, "it does not answer"
                time.sleep(0.01)

    def log(self) -> str:
        """What it wrote."""
        return (self._folder / "log").read_text(errors="replace")

    def freeze(self) -> None:
        """Stop it without closing anything (SIGSTOP)."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def configure(self, config: Mapping[str, str | list[str]]) -> None:
        """Add to its configuration, before it is started."""
        lines = [
            f"{name} {value or QUOTES}"
            for name, values in config.items()
            for value in ([values] if isinstance(values, str) else values)
        ]
        with (self._folder / "conf").open("a") as conf:
            conf.write("\n".join(lines) + "\n")

    def write(self, name: str, text: str) -> None:
        """Write a file into its folder."""
        (self._folder / name).write_text(text)


class Topology:
    """Servers that belong together, in a temporary folder.

    :param program: the binary of all of them.
    """

    #: as :func:`tests.support.topology` names it
    kind = ""

    def __init__(self, program: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fs-", dir="/tmp"))
        self.program = program
        #: every process
        self.nodes: list[RedisNode] = []
        #: those that hold data
        self.servers = self.nodes

    def node(self, config: Mapping[str, str | list[str]], **options: Any) -> RedisNode:
        """One more node, not started."""
        name = self.folder / str(len(self.nodes))
        self.nodes.append(RedisNode(self.program, name, config, **options))
        return self.nodes[-1]

    def start(self) -> None:
        """Start all and wait until they agree."""
        raise NotImplementedError

    def set(self, name: str, value: str | int) -> None:
        """Change the configuration of all servers (CONFIG SET)."""
        for server in self.servers:
            server.client().config_set(name, value)

    def close(self) -> None:
        """End all processes, frozen ones too, and remove the folder."""
        for node in self.nodes:
            node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
