"""However the demo is told to end, it tidies up first, and is not disturbed while it does."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def orderly_end() -> Iterator[None]:
    """Have the first SIGINT raise KeyboardInterrupt inside the block, the first SIGTERM or SIGHUP
    SystemExit; the ones after it are ignored."""
    before = {number: signal.getsignal(number) for number in _ENDINGS}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # under nohup, for one
                signal.signal(number, _end)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_endings() -> None:
    """From now on what is tidied up is tidied up; it takes a few seconds at most."""
    for number in _ENDINGS:
        signal.signal(number, signal.SIG_IGN)


def _end(number: int, _frame: FrameType | None) -> None:
    ignore_endings()
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
