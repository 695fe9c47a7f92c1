"""``flightsvc demo`` as a process whose traces can be found."""

from __future__ import annotations

import os
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.processes import ROOT, wait_until

#: in the environment of everything that the demo starts
MARK = "FLIGHT_DEMO_TEST"
FOLDERS = ("home", "tmp", "here")


class DemoProcess:
    """One run, in a session, a home and a temporary folder of its own.

    :param options: of the command.
    :param files: how many files it may have open; None: as many as the tests may.
    """

    def __init__(self, *options: str, files: int | None = None) -> None:
        self._options = options
        self._files = files
        self._mark = secrets.token_hex(8)
        # short, and open to all: the embedded server lives in it
        self.folder = Path(tempfile.mkdtemp(prefix="fd-", dir="/tmp"))
        self.folder.chmod(0o755)
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        for name in FOLDERS:
            (self.folder / name).mkdir()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "flightsvc", "demo", *self._options],
            cwd=self.folder / "here",
            env={
                **os.environ,
                MARK: self._mark,
                "HOME": str(self.folder / "home"),
                "TMPDIR": str(self.folder / "tmp"),
                "PYTHONPATH": str(ROOT),
                "PYTHONIOENCODING": "utf-8",
                # none of these is for the demo
                "FLIGHTSVC_BIND": "nowhere",
                "FLIGHTSVC_REDIS_URL": "redis://127.0.0.1:1",
                "GUNICORN_CMD_ARGS": "--workers=7",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
            preexec_fn=self._limit_files,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()
        for pid in self.left_processes():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None
        return self._process

    def read_until(self, word: str) -> None:
        """Read its output up to a line with this word."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if word in line:
                return
        raise AssertionError(f"it ended before {word!r}")

    def interrupt(self) -> None:
        """What Ctrl-C in a terminal does."""
        os.killpg(self.process.pid, signal.SIGINT)

    def finish(self) -> tuple[int, str, str]:
        """Wait for its end; exit code, output and errors."""
        output, errors = self.process.communicate(timeout=60)
        return self.process.returncode, output, errors

    def left_processes(self) -> list[int]:
        """Those that it started, however far away they went."""
        return list(self._marked())

    def assert_nothing_is_left(self) -> None:
        """No process and no file."""
        assert self.left_processes() == []
        left = sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))
        assert left == sorted(FOLDERS)

    def wait_for_the_last_process(self) -> None:
        wait_until(lambda: not self.left_processes())

    def _marked(self) -> Iterator[int]:
        wanted = f"{MARK}={self._mark}".encode()
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                if wanted in environ.read_bytes().split(b"\0"):
                    yield int(environ.parent.name)
            except OSError:
                continue  # it ended meanwhile

    def _limit_files(self) -> None:
        # a shell that runs the tests in its background has Ctrl-C ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if self._files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self._files, self._files))
