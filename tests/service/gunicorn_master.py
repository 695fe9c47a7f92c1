"""gunicorn with the project's configuration as a process that tests signal and look into."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.processes import ROOT, alive, wait_until
from tests.support.service import Reply, ask

GUNICORN = str(Path(sys.executable).with_name("gunicorn"))
TINY = "tests.service.tiny_app:app"
_LISTENING = re.compile(r"Listening at: http://([0-9.]+:[1-9][0-9]*)")


class Master:
    """A gunicorn master on a free port, in a session and with a temporary folder of its own.

    :param env: settings by their full names; an empty one is left out.
    :param options: further words of gunicorn's command line.
    :param app: what is served.
    :param config: gunicorn's ``-c``.
    :param gunicorn: the command that stands for gunicorn.
    :param cwd: where it is started.
    """

    def __init__(
        self,
        env: Mapping[str, str] | None = None,
        *,
        options: tuple[str, ...] = (),
        app: str = TINY,
        config: str = str(ROOT / "gunicorn.conf.py"),
        gunicorn: tuple[str, ...] = (GUNICORN,),
        cwd: Path = ROOT,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fs-"))
        self.folder.chmod(0o755)
        self._log = self.folder / "log"
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("FLIGHTSVC_", "_FLIGHTSVC_", "GUNICORN_"))
        }
        ours = {"FLIGHTSVC_BIND": "127.0.0.1:0", "TMPDIR": str(self.folder)}
        given = {**clean, **ours, **(env or {})}
        self._env = {name: value for name, value in given.items() if value}
        self._command = [*gunicorn, "-c", config, *options, app]
        self._cwd = cwd
        self._workers = int(self._env.get("FLIGHTSVC_WORKERS", 2))
        self._pass_fds: tuple[int, ...] = ()
        self.process: subprocess.Popen[bytes] | None = None

    def prefix(self, words: tuple[str, ...], *, pass_fds: tuple[int, ...]) -> None:
        """Start it by another command, with these descriptors open."""
        self._command = [*words, *self._command]
        self._pass_fds = pass_fds

    def launch(self) -> Self:
        """Start it; it need not come up."""
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                self._command,
                cwd=self._cwd,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=self._pass_fds,
            )
        return self

    def __enter__(self) -> Self:
        self.launch()
        try:
            wait_until(self.serving)
            wait_until(lambda: len(self.children()) == self._workers)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            print(self.log()[-6_000:], file=sys.stderr)
        self.close()

    @property
    def pid(self) -> int:
        """The first master's."""
        assert self.process is not None
        return self.process.pid

    def log(self) -> str:
        """All that was written so far."""
        return self._log.read_text(errors="replace")

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        found = _LISTENING.findall(self.log())
        assert found, "no address yet"
        return f"http://{found[-1]}"

    def get(self, path: str = "/") -> Reply:
        """One request on a new connection."""
        return ask(self.url + path, timeout_s=10)

    def serving(self) -> bool:
        """Whether it answers."""
        assert self.process is not None
        assert self.process.poll() is None, "it ended"
        try:
            return self.get("/healthz").status == 200
        except (OSError, AssertionError):
            return False

    def told(self) -> dict[str, Any]:
        """What the tiny app says."""
        said: dict[str, Any] = self.get().json()
        return said

    def send(self, number: signal.Signals) -> None:
        """Send the master a signal."""
        os.kill(self.pid, number)

    def reload(self) -> None:
        """HUP, and wait until only new workers are left and answer."""
        old = self.children()
        self.send(signal.SIGHUP)
        wait_until(lambda: not old & self.children() and len(self.children()) == self._workers)
        wait_until(self.serving)

    def upgrade(self) -> int:
        """USR2, and wait for the new master and its workers; the new master's process id."""
        old = self.children()
        self.send(signal.SIGUSR2)
        wait_until(lambda: self.children() - old)
        (new,) = self.children() - old
        wait_until(lambda: len(self.children(new)) == self._workers)
        return new

    def end(self, number: signal.Signals = signal.SIGTERM, within_s: float = 20) -> int:
        """Send a signal and wait for the end; the exit code."""
        assert self.process is not None
        self.send(number)
        return self.process.wait(within_s)

    def wait(self, within_s: float = 20) -> int:
        """Wait for the end; the exit code."""
        assert self.process is not None
        return self.process.wait(within_s)

    def in_session(self) -> set[int]:
        """All living processes of the master's session: masters and workers."""
        found = set()
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = stat.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.pid and fields[0] != "Z":
                    found.add(int(stat.parent.name))
        return found

    def children(self, pid: int | None = None) -> set[int]:
        """Living child processes of a master that are in its session: its workers."""
        found = set()
        for child in self.in_session():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == (pid or self.pid):
                    found.add(child)
        return found

    def valkeys(self) -> dict[str, int]:
        """The embedded servers that run: socket path → process id."""
        found = {}
        for pid_file in self.folder.glob("flightsvc-*/valkey.pid"):
            with contextlib.suppress(OSError, ValueError):
                found[str(pid_file.with_name("valkey.sock"))] = int(pid_file.read_text())
        return found

    def leftovers(self) -> list[str]:
        """What stands in the temporary folder beside the log."""
        return [entry.name for entry in self.folder.iterdir() if entry != self._log]

    def close(self) -> None:
        """End everything that still runs, by force if need be, and remove the folder."""
        if self.process is not None:
            self._end_all()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end_all(self) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.end(signal.SIGQUIT, within_s=10)
        for pid in self.in_session():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        servers = list(self.valkeys().values())
        wait_until(lambda: not any(alive(pid) for pid in servers))
