"""The service under gunicorn, as a process of the demo's own."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Set
from pathlib import Path
from types import TracebackType
from typing import Self

import flightsvc
from flightsvc.demo.load import Reply, get
from flightsvc.demo.signals import undisturbed
from flightsvc.embedded.supervisor import tell_when_parent_dies

WORKERS = 2
#: name of the model in the service's settings
MODEL = "demo-model"
#: longest wait for the service, and then for the second worker, in s
READY_S, SECOND_WORKER_S = 60.0, 5.0
#: time to end by itself, and for the access log to be written, in s
STOP_S, ACCESS_S = 10.0, 2.0

_PACKAGE = Path(flightsvc.__file__).parent
_CONFIGURATION = _PACKAGE / "gunicorn_conf.py"
_LISTENING = re.compile(r"Listening at: http://127\.0\.0\.1:([1-9][0-9]*) ")
#: one line of gunicorn's access log: the worker's process id and the request's
_SERVED = re.compile(r"^served <(\d+)> (\S+)$", re.MULTILINE)
#: one line of the service's own log for a request that went well
_ANSWERED = re.compile(r"^\[.*\] \[INFO\] [A-Z]+ [\w-]+ \d+ in .*$", re.MULTILINE)
_ACCESS = ("--access-logfile", "-", "--access-logformat", "served %(p)s %({x-request-id}i)s")


class DemoFailed(Exception):
    """The demo cannot go on.

    :param reason: one line.
    :param log: the last lines of the service's log.
    """

    def __init__(self, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.log = log


class DemoService:
    """Context manager: gunicorn with two workers and an embedded Valkey, on a free port.

    Settings of the environment do not reach it. Its log has no name in any folder, and where the
    kernel can (Linux), it is told when this process dies.

    :param model_url: base URL of the model server.
    :param settings: further settings by their full names (``FLIGHTSVC_…``).
    """

    def __init__(self, model_url: str, settings: dict[str, str] | None = None) -> None:
        self._model_url = model_url
        self._settings = settings or {}
        self._folder = tempfile.TemporaryDirectory(prefix="flightsvc-demo-")
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - stop() closes it
        self._process: subprocess.Popen[bytes] | None = None
        #: port on 127.0.0.1, once it listens
        self.port = 0

    def __enter__(self) -> Self:
        try:
            self._start()
            self._await_ready(time.monotonic() + READY_S)
            self._await_workers(time.monotonic() + SECOND_WORKER_S)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End it, by its process id; what does not end by itself is killed with its workers."""
        with undisturbed():
            process, self._process = self._process, None
            if process is not None:
                _end(process)
            self._log.close()
            self._folder.cleanup()

    def served_by(self, request_ids: Set[str]) -> dict[str, int]:
        """Request id → process id of the worker that answered it.

        A worker writes its access line after it has answered, so this waits a little for all.
        """
        until = time.monotonic() + ACCESS_S
        while not request_ids <= (found := self._served()).keys() and time.monotonic() < until:
            time.sleep(0.01)
        return {request: pid for request, pid in found.items() if request in request_ids}

    def last_words(self, lines: int = 40) -> str:
        """The end of the service's log, without what went well."""
        text = _ANSWERED.sub("", _SERVED.sub("", self._text()))
        said = [line for line in text.splitlines() if line.strip()]
        return "\n".join(said[-lines:])

    def _start(self) -> None:
        command = [sys.executable, "-m", "gunicorn", *_ACCESS, "-c", os.fspath(_CONFIGURATION)]
        self._process = subprocess.Popen(
            [*command, "flightsvc.wsgi:app"],
            cwd=self._folder.name,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C is for the demo, and the demo stops it
            preexec_fn=lambda: tell_when_parent_dies(signal.SIGTERM),
        )

    def _environment(self) -> dict[str, str]:
        prefixes = ("FLIGHTSVC_", "_FLIGHTSVC_", "GUNICORN_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
        root = str(_PACKAGE.parent)  # also where it is not installed
        paths = [root, *filter(None, [kept.get("PYTHONPATH")])]
        return {
            **kept,
            "PYTHONPATH": os.pathsep.join(paths),
            "FLIGHTSVC_BIND": "127.0.0.1:0",
            "FLIGHTSVC_WORKERS": str(WORKERS),
            "FLIGHTSVC_DATA_DIR": self._folder.name,
            "FLIGHTSVC_LOG_FORMAT": "text",
            "FLIGHTSVC_PROVIDER": "openai",
            "FLIGHTSVC_OPENAI_BASE_URL": self._model_url,
            "FLIGHTSVC_OPENAI_MODEL": MODEL,
            **self._settings,
        }

    def _await_ready(self, until: float) -> None:
        """:raises DemoFailed: it ended, or was not ready in time."""
        assert self._process is not None
        said = "it did not answer"
        while time.monotonic() < until:
            if self._process.poll() is not None:
                said = f"it ended with {self._process.returncode}"
                break
            if not self.port and (found := _LISTENING.search(self._text())):
                self.port = int(found[1])
            if self.port:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    ready = self._probe("ready")
                    if ready.status == 200 and ready.json().get("redis") != "degraded":
                        return
                    said = f"it says {ready.body.decode(errors='replace').strip()}"
            time.sleep(0.05)
        raise DemoFailed(f"the service did not get ready: {said}", self.last_words())

    def _await_workers(self, until: float) -> None:
        """Knock until each worker has answered once. A late one only makes the picture plainer."""
        knock = 0
        while len(set(self._served().values())) < WORKERS and time.monotonic() < until:
            knock += 1
            with contextlib.suppress(OSError, http.client.HTTPException):
                self._probe(f"knock-{knock}")
            time.sleep(0.01)

    def _probe(self, request_id: str) -> Reply:
        return get(self.port, "/readyz", {"X-Request-Id": request_id})

    def _served(self) -> dict[str, int]:
        return {request: int(pid) for pid, request in _SERVED.findall(self._text())}

    def _text(self) -> str:
        # its own position in the file: the service writes at the one that both share
        number = self._log.fileno()
        return os.pread(number, os.fstat(number).st_size, 0).decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the session that it was started in
        process.wait()
