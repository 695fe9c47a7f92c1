"""A worker's process, seen from the test."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import gevent

from tests.processes import run_python
from tests.proof.worker import PROGRAM

#: Longest time in seconds in which a worker says what it was asked to say.
PATIENCE_S = 30.0


class Worker:
    """One worker's process.

    :param url: of its Redis.
    :param name: in the history.
    :param options: see :mod:`tests.proof.worker`.
    """

    def __init__(self, url: str, name: str, folder: Path, seed: int, options: list[str]) -> None:
        self.name = name
        self.frozen = False
        words = [name, url, str(folder / f"{name}.jsonl"), str(seed), *options]
        self._process = run_python(PROGRAM, *words)
        self._said: list[str] = []
        self._reader = gevent.spawn(self._read)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def hears(self, what: str) -> None:
        """Wait until it has said something."""
        until = time.monotonic() + PATIENCE_S
        while what not in self._said:
            assert self.alive, f"{self.name} ended by itself"
            assert time.monotonic() < until, f"{self.name} does not say {what!r}"
            gevent.sleep(0.01)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.kill()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.append(line.strip())
