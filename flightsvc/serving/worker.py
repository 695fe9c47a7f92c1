"""A gunicorn worker: at the signal it stops listening and drains; it joins its flights at the end.

gunicorn's own loop looks for signals once a second and takes requests meanwhile, cuts off callers
that wait longer than ``graceful_timeout``, and exits without waiting for greenlets that serve no
request of its own. Each would cost callers or flights.
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

from flightsvc.serving.loop import WorkerLoop

#: environment of a worker: address of the embedded Valkey
EMBEDDED_URL = "_FLIGHTSVC_EMBEDDED_URL"
#: environment of a worker: its number, the lowest that was free
SLOT = "_FLIGHTSVC_WORKER_SLOT"

Handler = Callable[[int, FrameType | None], Any]

_draining: list[gevent.Greenlet[..., Any]] = []
_loop: WorkerLoop | None = None
_in_a_hurry = False


def post_worker_init(worker: Worker) -> None:
    """Make the app's objects, so that a fault stops the start; take over the stop signals."""
    global _loop
    module = _app_module()
    if module is not None:
        extensions = getattr(worker.wsgi, "extensions", None)
        if extensions is None:  # middleware around one app or several
            module.open_worker()
        elif "flightsvc" in extensions:
            module.open_worker(worker.wsgi)
    if WorkerLoop.can_serve(worker):
        _loop = WorkerLoop(worker, begin_drain)
        worker.run = _loop.run  # called next
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
        theirs = signal.getsignal(number)
        if callable(theirs):
            signal.signal(number, _stop_then(theirs))
    signal.siginterrupt(signal.SIGTERM, False)  # as gunicorn has it; signal.signal() undoes it


def worker_exit(arbiter: Arbiter, worker: Worker) -> None:
    """Let running flights end, or hand them on; the last thing that a worker does."""
    module = _app_module()
    if module is None or worker.pid != os.getpid():  # the master calls it too, for a dead worker
        return
    if _in_a_hurry:
        begin_drain(0)
    else:
        gevent.joinall(begin_drain(), timeout=arbiter.cfg.graceful_timeout)
    if _loop is not None:
        _loop.await_answers()
    module.close_worker()


def begin_drain(grace_s: float | None = None) -> list[gevent.Greenlet[..., Any]]:
    """Take no new flights from now on; returns at once.

    :param grace_s: time in s for what runs, at most what the settings say; None: that, once.
        Less time cuts a draining short that goes on already.
    :returns: what drains; each ends when nothing runs any more, or its time is over.
    """
    module = _app_module()
    if module is not None and (grace_s is not None or not _draining):
        _draining.extend(module.drain_worker(grace_s))
    return _draining


def _stop_then(theirs: Handler) -> Handler:
    def handle(number: int, frame: FrameType | None) -> None:
        global _in_a_hurry
        if _in_a_hurry:
            return  # Ctrl-C reaches a worker twice, from the terminal and from its master
        if number != signal.SIGTERM:
            _in_a_hurry = True
            begin_drain(0)
        elif _loop is None:
            begin_drain()
        theirs(number, frame)
        if _loop is not None:
            _loop.look_up()

    return handle


def _app_module() -> ModuleType | None:
    """flightsvc.app, if what is served uses it."""
    return sys.modules.get("flightsvc.app")
