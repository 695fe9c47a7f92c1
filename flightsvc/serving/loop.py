"""The main loop of a gevent worker, in place of gunicorn's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gevent
from gevent.event import Event
from gevent.pool import Pool
from gevent.server import StreamServer
from gunicorn.sock import ssl_context
from gunicorn.workers.base import Worker
from gunicorn.workers.ggevent import GeventWorker

#: time in s between two signs of life to the master
NOTIFY_S = 1.0
#: time in s in which requests on connections that are accepted already are served as ever: to
#: refuse them for having come just now would cost callers at each reload
LAST_REQUESTS_S = 1.0
#: longest time in s that answers may take on their way out
LAST_ANSWERS_S = 1.0
#: time in s that flights need to be handed on, and a worker to close what it has, before its
#: master kills it
RELEASE_S, CLOSE_S = 0.5, 2.5


class WorkerLoop:
    """Serves like :meth:`GeventWorker.run`, but stops accepting as soon as it is told to.

    :param worker: whose sockets it serves.
    :param drain: begins to drain this process within a time in s; returns what ends when nothing
        runs any more.
    """

    def __init__(
        self, worker: Worker, drain: Callable[[float], Sequence[gevent.Greenlet[..., Any]]]
    ) -> None:
        self._worker = worker
        self._drain = drain
        self._servers: list[StreamServer] = []
        self._pools: list[Pool] = []
        self._look = Event()

    @staticmethod
    def can_serve(worker: Worker) -> bool:
        """Whether it does what the worker's own loop would do."""
        return isinstance(worker, GeventWorker) and worker.server_class is None

    def run(self) -> None:
        """Serve until the worker is no longer wanted; then let what runs end, or hand it on."""
        self._servers = [self._listen(listener) for listener in self._worker.sockets]
        try:
            while self._worker.alive:
                self._worker.notify()
                self._look.wait(NOTIFY_S)
        finally:  # also where the master is gone, or there is a hurry
            for server in self._servers:
                server.close()
        limit = time.monotonic() + self._worker.cfg.graceful_timeout - CLOSE_S
        self._while_connected(LAST_REQUESTS_S)
        self._end(self._drain(max(0.0, limit - RELEASE_S - time.monotonic())), limit)

    def look_up(self) -> None:
        """See at once whether the worker is still wanted."""
        self._look.set()

    def await_answers(self) -> None:
        """Wait a moment for answers that are on their way out."""
        self._while_connected(LAST_ANSWERS_S)

    def _listen(self, listener: Any) -> StreamServer:
        worker = self._worker
        tls = {"ssl_context": ssl_context(worker.cfg)} if worker.cfg.is_ssl else {}
        listener.setblocking(1)
        self._pools.append(pool := Pool(worker.worker_connections))
        handle = partial(worker.handle, _Named(listener))
        server = StreamServer(listener, handle, spawn=pool, **tls)
        if worker.cfg.workers > 1:
            server.max_accept = 1
        server.start()
        return server

    def _end(self, draining: Sequence[gevent.Greenlet[..., Any]], limit: float) -> None:
        """Wait for connections and flights to end; the master hears that the worker lives."""
        notify_at = 0.0
        while (self._connected() or not all(each.dead for each in draining)) and (
            time.monotonic() < limit
        ):
            if time.monotonic() >= notify_at:
                self._worker.notify()
                notify_at = time.monotonic() + NOTIFY_S
            gevent.sleep(0.02)
        for server in self._servers:
            server.stop(timeout=0)  # who is still connected waits for no flight

    def _while_connected(self, at_most_s: float) -> None:
        limit = time.monotonic() + at_most_s
        while self._connected() and time.monotonic() < limit:
            gevent.sleep(0.02)

    def _connected(self) -> bool:
        return any(len(pool) for pool in self._pools)


class _Named:
    """What requests need of a listening socket; gunicorn asks that itself, closed or not, and
    resets a connection that was accepted just before."""

    def __init__(self, listener: Any) -> None:
        self._name = listener.getsockname()

    def getsockname(self) -> Any:
        return self._name
