"""However the demo is told to end, it tidies up first, and is not disturbed while it does."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from gevent.hub import get_hub

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def orderly_end() -> Iterator[None]:
    """Have the first SIGINT raise KeyboardInterrupt inside the block, the first SIGTERM or SIGHUP
    SystemExit; the ones after it are ignored."""
    before = {number: signal.getsignal(number) for number in _ENDINGS}
    hub = get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, KeyboardInterrupt)  # the hub hands it on, without a word
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # under nohup, for one
                signal.signal(number, _end)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore all of them inside the block: it tidies up, and takes a few seconds at most."""
    before = {number: signal.getsignal(number) for number in _ENDINGS}
    try:
        _ignore()
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _frame: FrameType | None) -> None:
    _ignore()
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def _ignore() -> None:
    for number in _ENDINGS:
        signal.signal(number, signal.SIG_IGN)
