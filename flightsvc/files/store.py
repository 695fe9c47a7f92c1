"""What a store of files can do; another one (S3, say) does the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in the store.

    :param digest: SHA-256 of its bytes, 64 hex digits; its name in the store.
    :param size: in bytes.
    """

    digest: str
    size: int


class FileStore(Protocol):
    """Files by the hash of their content: the same file twice is one file.

    No method blocks other greenlets.
    """

    def put(self, chunks: Iterable[bytes], *, limit: int) -> StoredFile:
        """Keep a file that comes in pieces; it is there whole, or not at all.

        If ``chunks`` raises, nothing is kept: so whoever feeds it can refuse a file to the last.

        :param limit: its largest size in bytes.
        :raises PayloadTooLarge: it is larger.
        :raises FilesUnavailable: there is no room for it.
        """
        ...

    def open(self, digest: str) -> BinaryIO:
        """The file, to be read and closed.

        :raises NotFound: it is not there.
        """
        ...

    def path(self, digest: str) -> AbstractContextManager[Path]:
        """The file as one on this machine's disk, for as long as the context lasts.

        :raises NotFound: it is not there.
        """
        ...

    def delete(self, digest: str) -> bool:
        """Forget the file now; whoever has it open reads on. Whether there was one."""
        ...

    def older_than(self, age_s: float) -> list[str]:
        """The digests of files that were last put longer ago than this, in s."""
        ...

    def __contains__(self, digest: str) -> bool: ...

    def close(self) -> None:
        """Give back what this process holds for it; the files stay."""
        ...


def is_digest(text: str) -> bool:
    """Whether it could name a file; anything else is no file, and never becomes a path."""
    return _DIGEST.fullmatch(text) is not None
