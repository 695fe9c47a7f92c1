"""A worker in a child process, seen from the test."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import gevent

from tests.processes import run_python, wait_until

# the patch comes first, as in every worker
PROGRAM = """
from gevent import monkey; monkey.patch_all()
from tests.flight.processes.worker import main; main()
"""


class Child:
    """One :mod:`tests.flight.processes.worker`.

    :param settings: of its ``SingleFlight``.
    """

    def __init__(self, url: str, namespace: str, **settings: Any) -> None:
        self._process = run_python(PROGRAM, url, namespace, json.dumps(settings))
        self._said: list[dict[str, Any]] = []
        self._reader = gevent.spawn(self._read)

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, tag: str, **options: Any) -> None:
        """Callers ask; see :class:`tests.flight.processes.worker.Asking`."""
        self._tell({"do": "run", "tag": tag, **options})

    def counts(self) -> dict[str, float]:
        """What it has counted so far."""
        self._said = [said for said in self._said if said["said"] != "counts"]
        self._tell({"do": "counts"})
        counts: dict[str, float] = self.heard("counts")["counts"]
        return counts

    def all_heard(self, said: str) -> list[dict[str, Any]]:
        """Everything of a kind that it has said so far."""
        return [line for line in self._said if line["said"] == said]

    def heard(self, said: str, within_s: float = 10.0) -> dict[str, Any]:
        """The first line of a kind that it says."""
        wait_until(lambda: self.all_heard(said), within_s)
        return self.all_heard(said)[0]

    def signal(self, number: signal.Signals) -> None:
        """Freeze, thaw or kill it."""
        os.kill(self.pid, number)

    def __enter__(self) -> Self:
        self.heard("ready", 30)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.kill()

    def _tell(self, order: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(ValueError):  # the pipe is closed
            for line in self._process.stdout:
                self._said.append(json.loads(line))
