"""StatsD → carbon → graphite-web: real processes on free ports of 127.0.0.1.

A context manager. Everything is in a temporary folder; every process is ended by its id, and
where the kernel can (Linux) ends with the process that started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dashboards.configuration import HOST, Ports, write
from dashboards.programs import Programs
from flightsvc.embedded.supervisor import tell_when_parent_dies

#: longest time for each program to listen, and to end by itself, in s
START_S, STOP_S = 60.0, 10.0


class ChainFailed(Exception):
    """A program did not start, or ended; the text has its last words."""


class Chain:
    """The three programs.

    :param flush_ms: time between two flushes of StatsD, in ms.
    :param retention: what carbon keeps, e.g. ``1s:1h``.
    :param web_port: of graphite-web; 0: a free one.
    """

    def __init__(
        self,
        programs: Programs,
        *,
        flush_ms: int = 1_000,
        retention: str = "1s:1h",
        web_port: int = 0,
    ) -> None:
        self._programs = programs
        self._flush_ms = flush_ms
        self._retention = retention
        self._folder = Path(tempfile.mkdtemp(prefix="flightsvc-graphite-"))
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []
        ports = Ports(*free_ports(len(Ports._fields)))
        self._ports = ports._replace(web=web_port) if web_port else ports
        self._marks = 0

    @property
    def statsd_port(self) -> int:
        """UDP port of StatsD."""
        return self._ports.statsd

    @property
    def url(self) -> str:
        """graphite-web's address, without a slash at the end."""
        return f"http://{HOST}:{self._ports.web}"

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all, the last first, and remove the folder."""
        for _, process in reversed(self._running):
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for _, process in reversed(self._running):
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # the session that it was started in
                process.wait()
        self._running.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    # -- asking --------------------------------------------------------------------------------

    def render(self, targets: Sequence[str], *, since: str = "-10min") -> dict[str, list[float]]:
        """Series by name, through the render API; seconds without a value are left out."""
        asked = [("target", target) for target in targets]
        found = json.loads(self.get("/render", [*asked, ("from", since), ("format", "json")]))
        return {
            each["target"]: [value for value, _ in each["datapoints"] if value is not None]
            for each in found
        }

    def total(self, target: str) -> float:
        """The sum of all values of all series of a target."""
        return sum(sum(values) for values in self.render([target]).values())

    def picture(self, graph: Mapping[str, Any]) -> bytes:
        """A PNG; its parameters are those of graphite's render API."""
        asked = [
            (name, str(one))
            for name, value in graph.items()
            for one in (value if isinstance(value, list) else [value])
        ]
        return self.get("/render", [*asked, ("format", "png")])

    def keep_dashboard(self, state: Mapping[str, Any]) -> str:
        """Save a dashboard under its name; its address."""
        name = urllib.parse.quote(str(state["name"]))
        body = urllib.parse.urlencode({"state": json.dumps(state)}).encode()
        self._open(urllib.request.Request(f"{self.url}/dashboard/save/{name}", body))
        return f"{self.url}/dashboard/{name}"

    def settle(self, within_s: float = 60.0) -> None:
        """Wait until all that was sent to StatsD before this call can be read.

        A mark follows it the same way: through one UDP socket, one flush and one connection.
        """
        self._marks += 1
        name = f"chain.mark.{self._marks}"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(f"{name}:1|c".encode(), (HOST, self.statsd_port))
        until = time.monotonic() + within_s
        while self.total(f"stats.counters.{name}.count") != 1:
            self._check(until, "a mark does not arrive")
            time.sleep(0.1)

    def get(self, path: str, query: Sequence[tuple[str, str]] = ()) -> bytes:
        """GET something of graphite-web.

        :raises ChainFailed: it answers with an error.
        """
        address = f"{self.url}{path}?{urllib.parse.urlencode(query)}"
        return self._open(urllib.request.Request(address))

    def _open(self, request: urllib.request.Request) -> bytes:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                body: bytes = answer.read()
                return body
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")[-2_000:]
            raise ChainFailed(f"{request.full_url}: {error.code}: {said}") from error

    # -- starting ------------------------------------------------------------------------------

    def _start(self) -> None:
        programs, ports, folder = self._programs, self._ports, self._folder
        content = programs.venv / "webapp" / "content"
        write(folder, ports, content, flush_ms=self._flush_ms, retention=self._retention)
        python, config = str(programs.python), str(folder / "carbon.conf")
        words = ("--config", config, "--nodaemon", "--pidfile", str(folder / "carbon.pid"))
        self._run("carbon", python, str(programs.carbon), *words, "start")
        self._await("carbon", ports.carbon)
        self._run("statsd", "node", str(programs.statsd), str(folder / "statsd.js"))
        made = self._run("tables", python, "-m", "django", "migrate", "--run-syncdb", "-v", "0")
        if made.wait(START_S):
            raise ChainFailed(f"graphite-web has no tables:\n{self._words('tables')}")
        self._running.remove(("tables", made))
        serve = ("-m", "gunicorn", "--bind", f"{HOST}:{ports.web}", "--threads", "8")
        self._run("web", python, *serve, "--no-control-socket", "graphite.wsgi:application")
        self._await("statsd", ports.statsd_management)
        self._await("web", ports.web)

    def _run(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("FLIGHTSVC_", "_FLIGHTSVC_", "GUNICORN_", "PYTHON"))
        }
        environment = {
            "PYTHONPATH": str(self._folder),
            "PYTHONWARNINGS": "ignore",
            "DJANGO_SETTINGS_MODULE": "graphite.settings",
            "GRAPHITE_SETTINGS_MODULE": "chain_settings",
            "GRAPHITE_ROOT": str(self._folder),
            "GRAPHITE_CONF_DIR": str(self._folder),
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self._folder,
                env={**kept, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for who started it, and they end it
                preexec_fn=lambda: tell_when_parent_dies(signal.SIGTERM),
            )
        self._running.append((name, process))
        return process

    def _await(self, name: str, port: int) -> None:
        until = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection((HOST, port), 1).close()
                return
            except OSError:
                self._check(until, f"{name} does not listen")
                time.sleep(0.05)

    def _check(self, until: float, said: str) -> None:
        """:raises ChainFailed: a program has ended, or the time is over."""
        for name, process in self._running:
            if process.poll() is not None:
                raise ChainFailed(f"{name} ended with {process.returncode}:\n{self._words(name)}")
        if time.monotonic() > until:
            raise ChainFailed(said + "\n" + "\n".join(self._words(n) for n, _ in self._running))

    def _words(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")[-3_000:]


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in held]
