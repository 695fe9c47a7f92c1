"""The private folder of one embedded server: its name, its lock, and sweeping what was left.

A folder belongs to a supervisor for as long as that process holds an exclusive ``flock`` on the
folder's lock file. The kernel drops the lock with the process, however it ends, so a folder
whose lock can be had is a leftover; no process id has to be trusted.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from flightsvc.errors import SettingsError

PREFIX = "flightsvc-"
LOCK = "lock"
SOCKET = "valkey.sock"
PID_FILE = "valkey.pid"
LOG = "valkey.log"

#: longest path of a unix socket in bytes, its closing NUL not counted (macOS 103, Linux 107)
LONGEST_SOCKET_PATH = 103

_FALLBACK_ROOT = Path("/tmp")


def reserve() -> Path:
    """A folder name that nobody has: nothing is written yet.

    :raises SettingsError: no temporary folder has a path short enough for a unix socket.
    """
    for root in _roots():
        folder = root / f"{PREFIX}{secrets.token_hex(6)}"
        if len(os.fsencode(folder / SOCKET)) <= LONGEST_SOCKET_PATH:
            return folder
    raise SettingsError(
        "there is no temporary folder for the embedded Valkey: set TMPDIR to a writable folder "
        "with a path shorter than 60 bytes, or set FLIGHTSVC_REDIS_URL to a Redis"
    )


def claim(folder: Path) -> int:
    """Make the folder and lock it; who inherits the returned descriptor owns the folder.

    A sweep may meet the folder before it is locked and remove it; then it is made again.
    """
    for _ in range(100):
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            folder.mkdir(mode=0o700)
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock).st_nlink:
                return lock
            os.close(lock)
        time.sleep(0.01)
    raise SettingsError(f"the folder {folder} for the embedded Valkey cannot be made")


def sweep() -> list[Path]:
    """Remove the folders of this user whose supervisor is gone; returns them."""
    return [folder for root in _roots() for folder in root.glob(f"{PREFIX}*") if _swept(folder)]


def _roots() -> Iterator[Path]:
    """Temporary folders, the configured one first, that a worker's user can reach too."""
    for root in dict.fromkeys((Path(tempfile.gettempdir()), _FALLBACK_ROOT)):
        if os.access(root, os.W_OK | os.X_OK) and (os.geteuid() != 0 or _open_to_all(root)):
            yield root


def _open_to_all(root: Path) -> bool:
    """Whether every user can walk down to the folder: root's workers may run as any user."""
    return all(part.stat().st_mode & stat.S_IXOTH for part in (root, *root.parents))


def _swept(folder: Path) -> bool:
    if folder.is_symlink():
        return False
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False  # not one of these folders, or another user's
    try:
        if os.fstat(lock).st_uid != os.geteuid():
            return False
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _shut_down(folder / SOCKET)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return False  # somebody lives there
    finally:
        os.close(lock)
    return True


def _shut_down(path: Path) -> None:
    """End a server that outlived its supervisor (where the kernel does not do it: macOS)."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        connection.connect(os.fspath(path))
        connection.sendall(b"SHUTDOWN NOSAVE\r\n")
        connection.recv(64)
