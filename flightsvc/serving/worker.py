"""A gunicorn worker: it drains at the signal, and joins its flights before it goes.

gunicorn's gevent worker looks at its signals once a second, and exits without waiting for
greenlets that serve no request of its own; both would cost flights.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

import gevent
from gunicorn.arbiter import Arbiter
from gunicorn.workers.base import Worker

#: environment of a worker: address of the embedded Valkey
EMBEDDED_URL = "_FLIGHTSVC_EMBEDDED_URL"
#: environment of a worker: its number, the lowest that was free
SLOT = "_FLIGHTSVC_WORKER_SLOT"

Handler = Callable[[int, FrameType | None], Any]

_draining: list[gevent.Greenlet[..., Any]] = []
_in_a_hurry = False


def post_worker_init(worker: Worker) -> None:
    """Make the app's objects, so that a fault stops the start; take over the stop signals."""
    module = _app_module()
    if module is not None and "flightsvc" in getattr(worker.wsgi, "extensions", ()):
        module.open_worker(worker.wsgi)
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
        theirs = signal.getsignal(number)
        if callable(theirs):
            signal.signal(number, _drain_then(theirs))
    signal.siginterrupt(signal.SIGTERM, False)  # as gunicorn has it; signal.signal() undoes it


def worker_exit(arbiter: Arbiter, worker: Worker) -> None:
    """Let running flights end, or hand them on; the last thing that a worker does."""
    module = _app_module()
    if module is None or worker.pid != os.getpid():  # the master calls it too, for a dead worker
        return
    begin_drain()
    if not _in_a_hurry:
        gevent.joinall(_draining, timeout=arbiter.cfg.graceful_timeout)
    module.close_worker()


def begin_drain() -> None:
    """Take no new flights from now on; returns at once."""
    module = _app_module()
    if module is not None and not _draining:
        _draining.extend(module.drain_worker())


def _drain_then(theirs: Handler) -> Handler:
    def handle(number: int, frame: FrameType | None) -> None:
        global _in_a_hurry
        if _in_a_hurry:
            return  # Ctrl-C reaches a worker twice, from the terminal and from its master
        _in_a_hurry = number != signal.SIGTERM
        begin_drain()
        theirs(number, frame)

    return handle


def _app_module() -> ModuleType | None:
    """flightsvc.app, if what is served uses it."""
    return sys.modules.get("flightsvc.app")
