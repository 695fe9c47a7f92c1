"""Where lines go, and in which form."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from typing import IO

from flightsvc.logs.formats import OURS, JsonFormatter, TextFormatter
from flightsvc.settings import Settings


def configure(settings: Settings, stream: IO[str] | None = None) -> None:
    """Write this package's lines to a stream, and none of them anywhere else.

    For a program of its own, or a server other than gunicorn. Under gunicorn the service does it
    by itself; an app that sets up ``logging`` as it likes it needs no call: the lines are records
    of the loggers ``flightsvc.…``, with their fields as attributes.

    :param settings: ``log_format`` and ``log_content``.
    :param stream: None: standard error.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatter(settings, handler.stream))
    attach([handler])


def formatter(settings: Settings, stream: IO[str]) -> logging.Formatter:
    """The formatter for a stream: by the setting, or (``auto``) text on a terminal, else JSON."""
    style = settings.log_format
    if style == "auto":
        style = "text" if stream.isatty() else "json"
    kind = JsonFormatter if style == "json" else TextFormatter
    return kind(content=settings.log_content)


def attach(handlers: Iterable[logging.Handler], level: int = logging.INFO) -> None:
    """Have these handlers, and no others, write this package's lines.

    :param level: lines below it are not written.
    """
    logger = logging.getLogger(OURS)
    for former in list(logger.handlers):
        logger.removeHandler(former)
    for handler in handlers:
        logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False
