"""The process between the gunicorn master and the embedded server.

Run by its path, with nothing but the standard library; its order is one JSON object on stdin:

    {"parent": 1, "folder": "…", "command": ["valkey-server", …], "log": "…",
     "user": [uid, gid] or null}

It starts the server, starts it again when it dies, and ends with its parent: it stops the server
and removes the folder. The master cannot do this itself. It forks workers all the time, so it
must run no threads; Linux's parent-death signal follows the *thread* that forked; and nothing
in a master that is killed removes a folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

PR_SET_PDEATHSIG = 1
#: a server that lived this long (s) is started again at once
LONG_LIFE = 5.0
#: longest wait before a server is started again, in s
LONGEST_PAUSE = 2.0
#: time that the server gets to stop, in s
STOP_TIMEOUT = 3.0
#: how often the parent is looked at where the kernel does not tell, in s
LOOK_EVERY = 1.0

if sys.platform == "linux":
    # loaded before any fork: a child between fork and exec must not import
    _prctl: Callable[..., int] | None = ctypes.CDLL(None, use_errno=True).prctl
else:
    _prctl = None


def tell_when_parent_dies(number: int) -> None:
    """Have the kernel send this process a signal when the thread that forked it ends (Linux)."""
    if _prctl is not None:
        _prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


class Supervisor:
    """Keeps one server running until its parent is gone or SIGTERM comes.

    :param order: what the parent wrote, see the top of this file.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._parent: int = order["parent"]
        self._stop = False
        self._child: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._launches = 0
        self._pause = 0.0
        self._wake, wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def run(self) -> int:
        """The life of the supervisor; returns its exit code."""
        signal.signal(signal.SIGTERM, self._on_stop)
        for number in (signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, lambda *_: None)  # only to wake up
        tell_when_parent_dies(signal.SIGUSR1)
        while self._wanted():
            if self._child is None:
                self._wait(self._pause)
                if self._wanted():
                    self._launch()
            elif self._child.poll() is None:
                self._wait(LOOK_EVERY)
            elif self._never_came_up(self._child.returncode):
                return 1  # the parent reads the log and says so
            else:
                self._note_death(self._child.returncode)
        self._finish()
        return 0

    def _wanted(self) -> bool:
        return not self._stop and os.getppid() == self._parent

    def _on_stop(self, *_: object) -> None:
        self._stop = True

    def _wait(self, seconds: float) -> None:
        """Sleep until a signal comes or the time is over."""
        select.select([self._wake], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)

    def _launch(self) -> None:
        uid, gid = self._order["user"] or (None, None)
        self._started = time.monotonic()
        self._launches += 1
        try:
            with open(self._order["log"], "ab") as log:
                self._child = subprocess.Popen(
                    self._order["command"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    user=uid,
                    group=gid,
                    extra_groups=None if uid is None else (),
                    preexec_fn=_die_with(os.getpid()),
                )
        except OSError:
            if self._launches == 1:
                raise
            self._pause = LONGEST_PAUSE

    def _never_came_up(self, code: int) -> bool:
        short = time.monotonic() - self._started < LONG_LIFE
        return self._launches == 1 and code > 0 and short

    def _note_death(self, code: int) -> None:
        lived = time.monotonic() - self._started
        longer = min(LONGEST_PAUSE, max(0.1, self._pause * 2))
        self._pause = 0.0 if lived >= LONG_LIFE else longer
        self._child = None
        print(
            f"flightsvc: the embedded Valkey ended (code {code}); starting it again",
            file=sys.stderr,
            flush=True,
        )

    def _finish(self) -> None:
        if self._child is not None:
            self._child.terminate()
            try:
                self._child.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        shutil.rmtree(self._order["folder"], ignore_errors=True)


def _die_with(supervisor: int) -> Callable[[], None]:
    """What the child does before it becomes the server; a change of user comes before."""

    def prepare() -> None:
        tell_when_parent_dies(signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(1)  # the supervisor died before the kernel was told

    return prepare


def main() -> int:
    """Read the order and follow it."""
    order = json.load(sys.stdin)
    try:
        return Supervisor(order).run()
    except OSError as problem:
        with open(order["log"], "a") as log:
            log.write(f"{problem}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
