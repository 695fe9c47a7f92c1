"""What can go wrong between a worker and Redis, as one class."""

from __future__ import annotations

import redis.exceptions as upstream

#: The client library's classes, the first that fits wins: subclasses come before their bases.
_KINDS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, str], ...] = (
    ((upstream.TimeoutError, TimeoutError), "timeout", "Redis did not answer in time"),
    (upstream.BusyLoadingError, "loading", "Redis is loading its data"),
    (upstream.MasterDownError, "loading", "Redis has lost its master"),
    (upstream.ClusterDownError, "loading", "the cluster is down"),
    (upstream.OutOfMemoryError, "oom", "Redis is full"),
    (upstream.ReadOnlyError, "readonly", "Redis is read-only"),
    (
        (upstream.AuthenticationError, upstream.NoPermissionError),
        "denied",
        "Redis refused the user or the command",
    ),
    ((upstream.ConnectionError, OSError), "connection", "the connection to Redis failed"),
)

#: the server has lost its replicas: it may have been replaced, and not know it yet
_TOO_FEW = "NOREPLICAS"
#: a blocking read was ended, since its server is no master any more
_UNBLOCKED = "UNBLOCKED"


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
    for classes, kind, message in _KINDS:
        if isinstance(error, classes):
            return StoreError(kind, message)
    text = str(error)
    if text.startswith("MISCONF") or _TOO_FEW in text:
        return StoreError("misconf", "Redis refuses writes, as it is configured to")
    if "ACL failure" in text or "can't run this command" in text:
        return StoreError("denied", "Redis refused the user or the command")
    if isinstance(error, upstream.AskError):
        return StoreError("other", "Redis is a node of a cluster: write redis+cluster://")
    return StoreError("other", f"Redis answered an error ({type(error).__name__})")


def refused(error: Exception) -> bool:
    """Whether a server did nothing, because it is no master, or not for all it knows."""
    return isinstance(error, upstream.ReadOnlyError) or _TOO_FEW in str(error)


def stale(error: Exception) -> bool:
    """Whether another server may have the data by now."""
    lost = (
        upstream.ConnectionError,
        upstream.TimeoutError,
        upstream.ClusterDownError,
        OSError,
    )
    return isinstance(error, lost) or refused(error) or str(error).startswith(_UNBLOCKED)
