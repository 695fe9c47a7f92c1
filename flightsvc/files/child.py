"""The process that reads one file: started, listened to, and ended whatever happens.

It is a fresh interpreter (a fork of a gevent process would share its loop, locks and sockets),
started by ``posix_spawn``, which copies nothing of this process: about 10 ms. It has no
environment, no open file but the one that it reads, and no name of it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import gevent
from gevent import monkey
from gevent.event import AsyncResult
from gevent.os import fork_and_watch, nb_read, waitpid

PROGRAM = Path(__file__).with_name("parser.py")
#: what the kernel ends it for: its computing time is used up, or the machine's memory
_ENDS = {-signal.SIGXCPU: "time", -signal.SIGKILL: "memory"}
#: time in s in which a process must be gone that has said its last word, or was killed
GONE_WITHIN = 5.0
READ_SIZE = 256 * 1024
#: an interpreter that was built to need it does not start without
_NEEDED = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")

_spawn: Callable[..., int] = monkey.get_original("os", "posix_spawn")


@dataclass(frozen=True, slots=True)
class Order:
    """What the process is to do.

    :param task: ``pdf`` or ``image``.
    :param options: limits of the task, by name; ``bytes`` bounds what it may answer.
    :param timeout_s: computing time, in s.
    :param clock_s: time by the clock, in s.
    :param memory_bytes: address space.
    """

    task: str
    path: Path
    options: dict[str, int]
    timeout_s: int
    clock_s: float
    memory_bytes: int


class Answer(NamedTuple):
    """What came of it.

    :param refused: why there is no content, a word of ``parser.py``; empty if there is.
    :param is_late: the time by the clock was over.
    """

    content: bytes = b""
    refused: str = ""
    is_late: bool = False


class Child:
    """One run of the program; a context, after which the process is gone.

    :raises FileNotFoundError: there is no such file.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self._status: AsyncResult[int] = AsyncResult()
        self._out, theirs = os.pipe()
        try:
            os.set_blocking(self._out, False)
            self._pid = fork_and_watch(self._ended, fork=lambda: self._start(theirs))
        except BaseException:
            os.close(self._out)
            raise
        finally:
            os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._out)
        # until the loop has seen its end, which no other greenlet can bring about, the id is its
        if not self._status.ready():
            os.kill(self._pid, signal.SIGKILL)
            self._status.wait(GONE_WITHIN)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._pid

    def answer(self) -> Answer:
        """Wait for it.

        :raises RuntimeError: the process could not begin; that is not the file's fault.
        """
        timer = gevent.Timeout(self._order.clock_s)
        try:
            with timer:
                said = self._listen()
                self._status.wait(GONE_WITHIN)
        except gevent.Timeout as expired:
            if expired is not timer:
                raise
            return Answer(is_late=True)
        return self._understood(said, self._status.value)

    def _listen(self) -> bytes:
        """All that it says, but not more than it may."""
        said = bytearray()
        while data := nb_read(self._out, READ_SIZE):
            said += data
            if len(said) > self._order.options["bytes"] + READ_SIZE:
                break
        return bytes(said)

    def _understood(self, said: bytes, status: int | None) -> Answer:
        ready, _, rest = said.partition(b"\n")
        if ready != b"ready":
            says = ready.decode(errors="replace") or f"it ended with {status}"
            raise RuntimeError(f"the process that reads files could not begin: {says}")
        refused, _, content = rest.partition(b"\n")
        if status in _ENDS:
            return Answer(refused=_ENDS[status])
        if status != 0:  # a library gave way under it, or it did not end
            return Answer(refused="damaged")
        return Answer(content, refused.decode())

    def _ended(self, watcher: Any) -> None:
        self._status.set(os.waitstatus_to_exitcode(watcher.rstatus))
        waitpid(watcher.pid, os.WNOHANG)  # gevent keeps what nobody asked for

    def _start(self, out: int) -> int:
        order = self._order
        told = {
            "task": order.task,
            "options": order.options,
            "timeout_s": order.timeout_s,
            "alarm_s": order.clock_s + 1,
            "memory_bytes": order.memory_bytes,
            "parent": os.getpid(),
            "path": [os.path.abspath(entry) for entry in sys.path if entry],
        }
        return _spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-X", "utf8", str(PROGRAM), json.dumps(told)],
            {name: os.environ[name] for name in _NEEDED if name in os.environ},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, str(order.path), os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, out, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setpgroup=0,  # a Ctrl-C is for those who wait for it
            setsigmask=[],
            setsigdef=[signal.SIGALRM, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM],
        )
