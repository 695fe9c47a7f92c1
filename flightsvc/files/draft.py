"""One file while it is written, and sweeping what crashes left.

A draft lies in a folder of its own beside the files and becomes one by a rename, when it is whole
and on the disk. It belongs to its process for as long as that holds an exclusive ``flock`` on it;
the kernel drops the lock with the process, however that ends, so a draft whose lock can be had
is a leftover.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from gevent import monkey

_Lock = monkey.get_original("threading", "Lock")


class Draft:
    """A file that is being written. Every method is for a thread, not for a greenlet.

    A greenlet can be killed while a thread still works for it, so calls may come side by side,
    and :meth:`discard` may come before :meth:`begin`.

    :param folder: where drafts lie.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / secrets.token_hex(16)
        self._hash = hashlib.sha256()
        self._lock = _Lock()  # of threads: gevent's own would switch greenlets
        self._fd = -1
        self._is_over = False
        self.size = 0

    @property
    def digest(self) -> str:
        """SHA-256 of what was written, hex."""
        return self._hash.hexdigest()

    def begin(self) -> None:
        """Make it and lock it. A sweep may meet it before it is locked; then it is made again.

        :raises OSError: the disk says no.
        """
        with self._lock:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            while self._fd < 0 and not self._is_over:
                fd = os.open(self._path, flags, 0o600)
                fcntl.flock(fd, fcntl.LOCK_EX)
                if os.fstat(fd).st_nlink:
                    self._fd = fd
                else:
                    os.close(fd)

    def write(self, data: bytes) -> None:
        """Add to its end.

        :raises OSError: the disk says no.
        """
        with self._lock:
            if self._is_over:
                return
            self._hash.update(data)
            self.size += len(data)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._fd, rest) :]

    def become(self, target: Path) -> None:
        """Be the file ``target`` from now on, also after a power cut; it takes the place of one.

        :raises OSError: the disk says no.
        """
        with self._lock:
            if self._is_over:
                return
            os.fsync(self._fd)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.replace(self._path, target)
            self._end()
            for folder in (target.parent, target.parent.parent):
                _sync_folder(folder)

    def discard(self) -> None:
        """Remove it, unless it became a file."""
        with self._lock:
            if not self._is_over:
                with contextlib.suppress(FileNotFoundError):
                    self._path.unlink()
                self._end()

    def _end(self) -> None:
        self._is_over = True
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def sweep(folder: Path) -> list[Path]:
    """Remove the drafts whose process is gone; returns them."""
    return [path for path in _entries(folder) if _swept(path)]


def _entries(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        yield from [Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False)]


def _swept(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False  # it was finished meanwhile, or is another user's
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    except OSError:
        return False  # somebody writes it, or it was finished meanwhile
    finally:
        os.close(fd)
    return True


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
