"""A model server in a process of its own, for tests and demos."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import urllib3

import flightsvc

#: A script, as Python values: a list of rules, or an object with ``rules`` and ``default``.
ScriptSource = list[dict[str, Any]] | dict[str, Any]


class ModelServerProcess:
    """Context manager: runs a model server on a free port of 127.0.0.1 and ends it again.

    It also ends when the process that started it dies.

    :param script: the first script; :meth:`reset` returns to a good answer at once.
    :param start_s: longest time to start, in seconds.
    """

    def __init__(self, script: ScriptSource | None = None, *, start_s: float = 30.0) -> None:
        self._first_script = script
        self._start_s = start_s
        self._process: subprocess.Popen[bytes] | None = None
        self._http = urllib3.PoolManager(
            retries=False, headers={"Connection": "close"}, timeout=urllib3.Timeout(10)
        )
        #: ``http://127.0.0.1:<port>``
        self.url = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def base_url(self) -> str:
        """What an OpenAI client is given as its base URL."""
        return f"{self.url}/v1"

    @property
    def xingchen_url(self) -> str:
        """What the XingChen provider is given as its base URL."""
        return self.url

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._running().pid

    def start(self) -> None:
        """Start it and wait till it listens.

        :raises RuntimeError: it ended or stayed silent instead; its own words are on stderr.
        """
        root = str(Path(flightsvc.__file__).parent.parent)
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "flightsvc.model_server", "--stop-with-stdin"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,  # Ctrl-C is for who started it, and they stop it
        )
        try:
            self.url = self._first_line().rpartition(" ")[2]
            if self._first_script is not None:
                self.script(self._first_script)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it, by its process id."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def stats(self) -> dict[str, Any]:
        """The server's counters."""
        return self._ask("GET", "/_stats")

    def until(self, timeout_s: float = 10.0, **wanted: Any) -> dict[str, Any]:
        """The counters, once they are as wanted (``until(open_calls=10)``).

        :raises TimeoutError: they did not become so; the message says what they were.
        """
        end = time.monotonic() + timeout_s
        while True:
            stats = self.stats()
            if all(stats[name] == value for name, value in wanted.items()):
                return stats
            if time.monotonic() > end:
                seen = {name: stats[name] for name in wanted}
                raise TimeoutError(f"the model server's counters are {seen}, not {wanted}")
            time.sleep(0.005)

    def script(self, rules: ScriptSource) -> None:
        """Answer by this script from now on; counters stay.

        :raises ValueError: the script is not valid; names the field.
        """
        self._ask("PUT", "/_script", json.dumps(rules).encode())

    def open_gate(self, name: str) -> None:
        """Let the calls go on that wait at a gate, now and until :meth:`reset`."""
        self._ask("POST", f"/_gates/{name}")

    def reset(self) -> None:
        """No script, no counts, gates shut, all connections closed."""
        self._ask("POST", "/_reset")

    def _ask(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        response = self._http.request(method, self.url + path, body=body)
        document: dict[str, Any] = json.loads(response.data)
        if response.status >= 400:
            raise ValueError(document["error"]["message"])
        return document

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the model server is not running")
        return self._process

    def _first_line(self) -> str:
        out = self._running().stdout
        assert out is not None
        ready, _, _ = select.select([out], [], [], self._start_s)
        line = out.readline().decode().strip() if ready else ""
        if not line:
            raise RuntimeError(f"the model server did not start within {self._start_s} s")
        return line
