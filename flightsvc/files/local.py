"""The store on this machine's disk.

::

    files/ab/abcdef…    a file, under the SHA-256 of its bytes
    files/drafts/       what is still being written

Several workers, also of several services, may share it.
"""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from gevent.fileobject import FileObjectThread
from gevent.threadpool import ThreadPool

from flightsvc.errors import FilesUnavailable, NotFound, PayloadTooLarge
from flightsvc.files.draft import Draft, sweep
from flightsvc.files.store import FileStore, StoredFile, is_digest
from flightsvc.files.threads import in_thread

T = TypeVar("T")

#: threads for the disk: not the hub's own, which look up names and must not wait for it
THREADS = 4
#: what a disk says that takes no more: these pass, and not by sending the file again at once
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
#: in s
RETRY_AFTER_S = 60.0

log = logging.getLogger("flightsvc.files")


class LocalFileStore(FileStore):
    """Files in a folder that only this user can look into.

    :param folder: made if need be.
    :raises OSError: it cannot be made or written to.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._drafts = self._folder / "drafts"
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        for each in (self._folder, self._drafts):
            each.mkdir(mode=0o700, exist_ok=True)
        if not os.access(self._drafts, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
        self._pool: ThreadPool | None = None
        sweep(self._drafts)

    def put(self, chunks: Iterable[bytes], *, limit: int) -> StoredFile:
        draft = Draft(self._drafts)
        try:
            self._write(draft.begin)
            for chunk in chunks:
                if draft.size + len(chunk) > limit:
                    raise PayloadTooLarge(f"The file may have at most {limit} bytes.")
                self._write(draft.write, chunk)
            kept = StoredFile(draft.digest, draft.size)
            self._write(draft.become, self._place(kept.digest))
        except BaseException:
            self._do(draft.discard)
            raise
        return kept

    def open(self, digest: str) -> BinaryIO:
        place = self._named(digest)
        try:
            file = FileObjectThread(place, "rb", threadpool=self._threads())
        except FileNotFoundError:
            raise NotFound(_GONE) from None
        return cast(BinaryIO, file)

    @contextmanager
    def path(self, digest: str) -> Iterator[Path]:
        place = self._named(digest)
        if not self._do(place.is_file):
            raise NotFound(_GONE)
        yield place

    def delete(self, digest: str) -> bool:
        return is_digest(digest) and self._do(_removed, self._place(digest))

    def older_than(self, age_s: float) -> list[str]:
        return self._do(self._older, time.time() - age_s)

    def __contains__(self, digest: str) -> bool:
        return is_digest(digest) and self._do(self._place(digest).is_file)

    def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.kill()

    def _older(self, moment: float) -> list[str]:
        found = []
        for file in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            with suppress(FileNotFoundError):
                if is_digest(file.name) and file.stat().st_mtime < moment:
                    found.append(file.name)
        return found

    def _place(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest

    def _named(self, digest: str) -> Path:
        if not is_digest(digest):
            raise NotFound(_GONE)
        return self._place(digest)

    def _do(self, call: Callable[..., T], *arguments: object) -> T:
        """Have a thread do it, while other greenlets run."""
        return in_thread(self._threads(), call, *arguments)

    def _write(self, call: Callable[..., None], *arguments: object) -> None:
        """The same with what needs room.

        :raises FilesUnavailable: there is none.
        """
        try:
            self._do(call, *arguments)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            log.error("Files cannot be kept in %s: %s", self._folder, error.strerror)
            raise FilesUnavailable(retry_after_s=RETRY_AFTER_S) from None

    def _threads(self) -> ThreadPool:
        if self._pool is None:  # made at the first use: a master that forks must have no threads
            self._pool = ThreadPool(THREADS)
        return self._pool


_GONE = "There is no such file; it may have been deleted. Send it again."


def _removed(place: Path) -> bool:
    try:
        place.unlink()
    except FileNotFoundError:
        return False
    return True
