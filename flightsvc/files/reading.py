"""What a model can be given of a file: a PDF's text, a picture as a plain JPEG.

pypdf and Pillow run in a process of their own (``parser.py``), with limits of time and memory, a
few at once. Callers wait without blocking other greenlets.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

import gevent
from gevent.lock import BoundedSemaphore

from flightsvc.errors import (
    EncryptedFile,
    FlightSvcError,
    NoText,
    Overloaded,
    UnreadableFile,
    UnsupportedFile,
)
from flightsvc.files.child import Child, Order
from flightsvc.files.kinds import JPEG, PDF, PNG, WEBP, kind_of
from flightsvc.files.threads import in_thread
from flightsvc.metrics import FILE_READ_TIME, FILE_READS, Metrics
from flightsvc.settings import Settings

#: largest text of a PDF, in bytes
MAX_TEXT_BYTES = 4 * 1024 * 1024
IMAGES = (JPEG, PNG, WEBP)


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """How much of everything a file may take.

    :param timeout_s: computing time, in s.
    :param clock_s: time by the clock, in s, waiting for a place not counted; that it is over is
        the fault of a busy machine, not of the file.
    :param memory_bytes: address space of the reading process.
    :param max_pages: pages of a PDF.
    :param max_pixels: width × height of a picture.
    :param max_image_bytes: size of the picture as it leaves; it is made coarser to fit.
    :param at_once: files that this process has read at once; others wait.
    """

    timeout_s: int
    clock_s: float
    memory_bytes: int
    max_pages: int
    max_pixels: int
    max_image_bytes: int
    at_once: int

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """As the settings say."""
        return cls(
            timeout_s=settings.file_parse_timeout_s,
            clock_s=2 * settings.file_parse_timeout_s + 5,
            memory_bytes=settings.file_parse_memory_mb * 1024 * 1024,
            max_pages=settings.max_pages,
            max_pixels=settings.max_pixels,
            max_image_bytes=settings.max_image_bytes,
            at_once=settings.file_parse_concurrency,
        )


def read_pdf(path: Path, limits: ReadLimits, metrics: Metrics | None = None) -> str:
    """The text of a PDF, pages parted by empty lines.

    :raises UnsupportedFile: it is no PDF.
    :raises NoText: it has none: a scan, or blank.
    :raises EncryptedFile: it opens with a password only; an empty one is tried.
    :raises UnreadableFile: it is damaged, or more than the limits allow.
    :raises Overloaded: this machine has no time for it now.
    """
    options = {"pages": limits.max_pages, "bytes": MAX_TEXT_BYTES}
    return _read("pdf", path, (PDF,), options, limits, metrics).decode()


def read_image(path: Path, limits: ReadLimits, metrics: Metrics | None = None) -> bytes:
    """A picture (JPEG, PNG or WebP) as a new JPEG: upright, without EXIF or anything else hidden.

    :raises UnsupportedFile: it is no such picture.
    :raises UnreadableFile: it is damaged, or more than the limits allow.
    :raises Overloaded: this machine has no time for it now.
    """
    options = {"pixels": limits.max_pixels, "bytes": limits.max_image_bytes}
    return _read("image", path, IMAGES, options, limits, metrics)


def _read(
    task: str,
    path: Path,
    kinds: tuple[str, ...],
    options: dict[str, int],
    limits: ReadLimits,
    metrics: Metrics | None,
) -> bytes:
    metrics = metrics or Metrics.off()
    began = time.perf_counter()
    outcome = "UNEXPECTED"
    try:
        _check_kind(path, kinds)
        with _place(limits):
            found = _run(_order(task, path, options, limits))
        outcome = "ok"
        return found
    except FlightSvcError as error:
        outcome = error.code
        raise
    finally:
        metrics.count(FILE_READS, task=task, outcome=outcome)
        metrics.time(FILE_READ_TIME, time.perf_counter() - began, task=task)


def _order(task: str, path: Path, options: dict[str, int], limits: ReadLimits) -> Order:
    return Order(task, path, options, limits.timeout_s, limits.clock_s, limits.memory_bytes)


def _check_kind(path: Path, kinds: tuple[str, ...]) -> None:
    """:raises UnsupportedFile: by its content it is none of these."""
    pool = gevent.get_hub().threadpool
    kind = in_thread(pool, kind_of, path)
    if not kind and not in_thread(pool, path.stat).st_size:
        raise UnreadableFile("The file is empty.")
    if kind not in kinds:
        names = ", ".join(each.rpartition("/")[2].upper() for each in kinds)
        raise UnsupportedFile(f"By its content this file is not of a type that is read: {names}.")


@contextmanager
def _place(limits: ReadLimits) -> Iterator[None]:
    """One of the places to read at; processors are what reading takes, and there are few."""
    places = _places(limits.at_once)
    if not places.acquire(timeout=limits.clock_s):
        raise Overloaded(
            "Too many files are being read; send it again soon.", retry_after_s=limits.timeout_s
        )
    try:
        yield
    finally:
        places.release()


@cache
def _places(at_once: int) -> BoundedSemaphore:
    """Shared by all apps of the process."""
    return BoundedSemaphore(at_once)


def _run(order: Order) -> bytes:
    with Child(order) as child:
        said = child.answer()
    if said.refused in _REFUSALS:
        raise _REFUSALS[said.refused]()
    if said.refused:
        raise UnreadableFile(_WHY[said.refused].format(**order.options, seconds=order.timeout_s))
    if said.is_late:
        raise Overloaded(
            "This machine was too busy to read the file; send it again soon.",
            retry_after_s=order.timeout_s,
        )
    return said.content


_REFUSALS = {
    "damaged": UnreadableFile,
    "encrypted": EncryptedFile,
    "no_text": NoText,
}
_WHY = {
    "memory": "Reading the file takes more memory than it may.",
    "time": "Reading the file takes longer than the {seconds} s that it may.",
    "pages": "The file has more than {pages} pages.",
    "text": "The file has more text than can be read.",
    "pixels": "The picture has more than {pixels} pixels.",
    "side": "The picture is wider or higher than the 65500 pixels of a JPEG.",
    "bytes": "The picture stays above {bytes} bytes, however coarse it is made.",
}
