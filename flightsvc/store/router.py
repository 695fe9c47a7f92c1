"""Which server holds a name: what :class:`~flightsvc.store.base.Store` asks to get there."""

from __future__ import annotations

from typing import Protocol, TypeVar

from flightsvc.store.server import Job, Server

T = TypeVar("T")


class Router(Protocol):
    """The way to the server of a name.

    Errors of the client library come through as they are. A job is done again only where the
    server said that it did not do it (it holds that name no longer, or is no master).
    """

    @property
    def one_slot_a_read(self) -> bool:
        """Whether a blocking read may name streams of one shard only."""

    def command(self, name: str, job: Job[T], /) -> T:
        """Do something that answers at once, where this name is."""

    def read(self, name: str, job: Job[T], /) -> T:
        """Do something that may block, where this name is."""

    def server_of(self, name: str, /) -> str:
        """The server that has this name now; empty while that is not known."""

    def servers(self) -> list[Server]:
        """All servers that take writes, as far as known; they are looked for if none is.

        :raises redis.exceptions.RedisError: if none can be found.
        """

    def close(self) -> None:
        """Close every connection."""


class OneServer:
    """A router that has no choice."""

    one_slot_a_read = False

    def __init__(self, server: Server) -> None:
        self._server = server

    def command(self, _name: str, job: Job[T]) -> T:
        return self._server.command(job)

    def read(self, _name: str, job: Job[T]) -> T:
        return self._server.read(job)

    def server_of(self, _name: str) -> str:
        return self._server.name

    def servers(self) -> list[Server]:
        return [self._server]

    def close(self) -> None:
        self._server.close()
