"""The service under gunicorn, as a process of its own, and a plain HTTP client for it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
_LISTENING = re.compile(r"Listening at: http://127\.0\.0\.1:([1-9][0-9]*)")


class Reply(NamedTuple):
    """An HTTP answer; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    url: str,
    method: str = "GET",
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 60,
) -> Reply:
    """One request on a connection of its own."""
    parts = urlsplit(url)
    assert parts.hostname
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
    try:
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        got = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(answer.status, got, answer.read())
    finally:
        connection.close()


def post_json(
    url: str, value: object, *, headers: Mapping[str, str] | None = None, timeout_s: float = 60
) -> Reply:
    """POST a value as JSON."""
    sent = {"Content-Type": "application/json", **(headers or {})}
    return ask(url, "POST", body=json.dumps(value).encode(), headers=sent, timeout_s=timeout_s)


class Service:
    """``gunicorn -c gunicorn.conf.py wsgi:app`` on a free port of 127.0.0.1.

    :param env: settings by their full names (``FLIGHTSVC_…``); nothing else of that prefix is
        taken over from the environment.
    :param workers: gunicorn worker processes.
    :param app: what gunicorn serves, importable from the checkout.
    :param options: further words of gunicorn's command line.
    """

    def __init__(
        self,
        env: Mapping[str, str] | None = None,
        *,
        workers: int = 2,
        app: str = "wsgi:app",
        options: tuple[str, ...] = (),
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="flightsvc-test-")
        self._log = Path(self._folder.name, "log")
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("FLIGHTSVC_", "_FLIGHTSVC_", "GUNICORN_"))
        }
        self._env = {
            **inherited,
            "FLIGHTSVC_BIND": "127.0.0.1:0",
            "FLIGHTSVC_WORKERS": str(workers),
            "FLIGHTSVC_DATA_DIR": self._folder.name,
            **(env or {}),
        }
        self._command = [
            *(sys.executable, "-m", "gunicorn"),
            *("-c", str(ROOT / "gunicorn.conf.py"), *options, app),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        #: address without a slash at the end; known after the start
        self.url = ""

    @property
    def data_dir(self) -> Path:
        """What it keeps files and rows in, unless its settings say otherwise."""
        return Path(self._folder.name)

    @property
    def pid(self) -> int:
        """The master's."""
        assert self._process is not None, "not started"
        return self._process.pid

    def start(self, timeout_s: float = 60, *, probe: str = "/readyz") -> Self:
        """Start and wait until ``probe`` answers 200; an end before that is an error."""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._await_ready(time.monotonic() + timeout_s, probe)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self, timeout_s: float = 40) -> int | None:
        """End it as an operator would, and by force if that is not enough. Its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the session that it was started in
            process.wait()
        return process.returncode

    def close(self) -> None:
        """Stop and remove the folder with the log."""
        self.stop()
        self._folder.cleanup()

    def worker_pids(self) -> list[int]:
        """The processes whose parent is the master and that run gunicorn."""
        pids = []
        for line in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split():
            command = Path(f"/proc/{line}/cmdline").read_bytes()
            if b"gunicorn" in command:
                pids.append(int(line))
        return pids

    def log(self) -> str:
        """Everything that it wrote so far."""
        return self._log.read_text(errors="replace")

    def get(self, path: str, **options: Any) -> Reply:
        """GET a path; options as of :func:`ask`."""
        return ask(self.url + path, **options)

    def post(self, path: str, value: object, **options: Any) -> Reply:
        """POST a value as JSON; options as of :func:`post_json`."""
        return post_json(self.url + path, value, **options)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            print(self.log()[-4_000:], file=sys.stderr)
        self.close()

    def _await_ready(self, deadline: float, probe: str) -> None:
        said = "no answer"
        while time.monotonic() < deadline:
            assert self._process is not None
            if self._process.poll() is not None:
                said = f"it ended with {self._process.returncode}"
                break
            if found := _LISTENING.search(self.log()):
                self.url = f"http://127.0.0.1:{found[1]}"
                try:
                    said = f"{probe} {(reply := self.get(probe, timeout_s=5)).status}"
                except OSError as error:
                    said = repr(error)
                else:
                    if reply.status == 200:
                        return
            time.sleep(0.05)
        raise AssertionError(f"the service is not ready: {said}\n{self.log()[-8_000:]}")
