"""What can go wrong between a worker and Redis, as one class."""

from __future__ import annotations

import redis.exceptions as upstream

#: Words at the start of Redis's error lines that say more than "an error".
_KINDS = {
    "OOM": "oom",
    "READONLY": "readonly",
    "LOADING": "loading",
    "MASTERDOWN": "loading",
    "MISCONF": "misconf",
    "NOPERM": "denied",
    "WRONGPASS": "denied",
    "NOAUTH": "denied",
}


class StoreError(Exception):
    """Redis did not do, or may not have done, what it was asked.

    :param kind: ``timeout``, ``connection``, ``loading``, ``readonly``, ``oom``, ``misconf``,
        ``denied``, ``down`` (not asked at all) or ``other``.
    """

    def __init__(self, kind: str, message: str = "") -> None:
        super().__init__(message or kind)
        self.kind = kind

    @property
    def maybe_done(self) -> bool:
        """Whether the command may have been carried out, its reply lost."""
        return self.kind in ("timeout", "connection")

    @property
    def unreachable(self) -> bool:
        """Whether asking again at once would cost time or fail the same way."""
        return self.kind in ("timeout", "connection", "loading")


def wrap(error: upstream.RedisError | OSError) -> StoreError:
    """The :class:`StoreError` for an error of the client library."""
    if isinstance(error, upstream.TimeoutError | TimeoutError):
        return StoreError("timeout", "Redis did not answer in time")
    if isinstance(error, upstream.BusyLoadingError):
        return StoreError("loading", "Redis is loading its data")
    if isinstance(error, upstream.AuthenticationError | upstream.NoPermissionError):
        return StoreError("denied", "Redis refused the user or the command")
    if isinstance(error, upstream.ReadOnlyError):
        return StoreError("readonly", "Redis is read-only")
    if isinstance(error, upstream.ConnectionError | OSError):
        return StoreError("connection", "the connection to Redis failed")
    word = str(error).split(" ", 1)[0].lstrip("-")
    for known, kind in _KINDS.items():
        if word == known or f"{known} " in str(error)[:200]:
            return StoreError(kind, f"Redis answered {known}")
    return StoreError("other", f"Redis answered an error ({type(error).__name__})")
