"""A real PostgreSQL on a unix socket, to be used, frozen and killed by tests.

It runs from Debian's binaries, in a temporary folder, and not as root, which it refuses.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import psycopg
import pytest

from tests.processes import wait_until

BINARIES = Path("/usr/lib/postgresql")
MISSING = "Debian package postgresql is missing"
SUPERUSER, PASSWORD = "postgres", "s3cr3t/@:#?"


def debian_postgresql() -> Path:
    """The folder of the newest server's programs; without one the test skips."""
    found = sorted(BINARIES.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if not found:
        pytest.skip(MISSING)
    return found[-1].parent


class PostgresServer:
    """One cluster of databases.

    :param options: further words of the server's command line.
    """

    def __init__(self, *options: str) -> None:
        self._programs = debian_postgresql()
        self._options = options
        self.folder = tempfile.mkdtemp(prefix="fs-pg-", dir="/tmp")
        self._process: subprocess.Popen[bytes] | None = None
        self._user: dict[str, Any] = {}
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            os.chmod(self.folder, 0o711)  # the socket in it is reached by any user

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def url(self, database: str, user: str = SUPERUSER, password: str = PASSWORD) -> str:
        """What ``FLIGHTSVC_DATABASE_URL`` takes."""
        who = f"{quote(user, safe='')}:{quote(password, safe='')}"
        return f"postgresql://{who}@/{database}?host={quote(self.folder, safe='')}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """A plain connection for looking from outside; each statement for itself."""
        return psycopg.connect(
            host=self.folder, user=SUPERUSER, password=PASSWORD, dbname=database, autocommit=True
        )

    def make_database(self) -> str:
        """An empty database of a name that no other test uses."""
        name = "t_" + os.urandom(6).hex()
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return name

    def start(self) -> None:
        """Start and wait until it answers."""
        if not Path(self.folder, "data").exists():
            self._make_cluster()
        self._process = subprocess.Popen(
            [
                *(str(self._programs / "postgres"), "-D", f"{self.folder}/data"),
                *("-k", self.folder, "-c", "listen_addresses=", "-c", "fsync=off"),
                *("-c", "log_min_messages=fatal", "-c", "timezone=UTC", *self._options),
            ],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._user,
        )
        wait_until(self._answers)

    def freeze(self) -> None:
        """Stop all of it without closing anything (SIGSTOP)."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """End it, and every connection; it can be started again."""
        if self._process is not None:
            self.thaw()
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make_cluster(self) -> None:
        secret = Path(self.folder, "password")
        secret.write_text(PASSWORD)
        subprocess.run(
            [
                *(str(self._programs / "initdb"), "-D", f"{self.folder}/data", "-U", SUPERUSER),
                *("-A", "scram-sha-256", "--pwfile", str(secret), "--no-sync"),
                *("-E", "UTF8", "--locale", "C"),
            ],
            cwd=self.folder,
            check=True,
            capture_output=True,
            **self._user,
        )

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "the server ended at once"
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        for pid in [self.pid, *self._children()]:
            os.kill(pid, number)

    def _children(self) -> Iterator[int]:
        text = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return map(int, text.split())
