"""Having a thread do what would block every greenlet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gevent.threadpool import ThreadPool

T = TypeVar("T")


def in_thread(pool: ThreadPool, call: Callable[..., T], *arguments: object) -> T:
    """Call it in a thread, while other greenlets run.

    :raises Exception: what it raises; a pool left alone with that would print it too.
    """
    result, error = pool.apply(_tried, (call, arguments))
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def _tried(
    call: Callable[..., T], arguments: tuple[object, ...]
) -> tuple[T | None, Exception | None]:
    try:
        return call(*arguments), None
    except Exception as error:
        return None, error
