"""The program that reads one file that nobody trusts; ``child.py`` starts it.

It is run by its path, imports nothing of flightsvc, and does without the site's start-up files:
so it begins in little time. The file is its standard input. On its standard output it says
``ready``, then a word for why it refuses the file (an empty line: it does not), then what it made
of it. Whatever else ends it, its parent sees by its exit status.
"""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

PR_SET_PDEATHSIG = 1
#: JPEG qualities that are tried until the picture fits
QUALITIES = (90, 75, 50)
#: largest width or height of a picture that libjpeg writes, in pixels
MAX_SIDE = 65_500

Work = Callable[[BinaryIO, dict[str, int]], bytes]


class Refused(Exception):
    """The file is not read; the argument is the word for why."""


def main(order: dict[str, Any]) -> int:
    """Do what the parent ordered, see ``child.py``.

    :returns: the exit status.
    """
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    os.nice(5)  # who waits for an answer of the service goes first
    signal.setitimer(signal.ITIMER_REAL, order["alarm_s"])  # should nobody be there to kill it
    die_with_parent(order["parent"])
    sys.path.extend(order["path"])
    try:
        limit(resource.RLIMIT_AS, order["memory_bytes"])
        work = TASKS[order["task"]]()
    except BaseException as error:
        say(f"{error!r}\n".encode())
        return 3
    confine(order["timeout_s"])
    say(b"ready\n")
    refused, content = read(work, order["options"])
    say(refused.encode() + b"\n" + content)
    return 0


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process with its parent (Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(0)


def confine(timeout_s: int) -> None:
    """Give up what reading does not need: it cannot write files or start processes."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + 0.999) + timeout_s, beyond=1)
    for each in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):
        limit(each, 0)


def limit(what: int, value: int, *, beyond: int = 0) -> None:
    """Set a limit of the kernel's, at most what it is already.

    :param beyond: how far above it the hard limit is: that of computing time kills without a word.
    """
    ceiling = resource.getrlimit(what)[1]
    hard = value + beyond if ceiling == resource.RLIM_INFINITY else min(value + beyond, ceiling)
    try:
        resource.setrlimit(what, (min(value, hard), hard))
    except ValueError:
        if sys.platform == "linux":  # macOS has no such limit of memory
            raise


def read(work: Work, options: dict[str, int]) -> tuple[str, bytes]:
    """Why the file is refused, and its content if it is not."""
    try:
        return "", work(sys.stdin.buffer, options)
    except Refused as refused:
        return str(refused), b""
    except MemoryError:
        return "memory", b""
    except Exception:  # whatever the libraries stumble over
        return "damaged", b""


def say(data: bytes) -> None:
    """Write all of it."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]


def pdf_work() -> Work:
    """Load what reads a PDF; returns what does it."""
    import logging

    import pypdf

    logging.disable()
    pypdf.overwrite_configuration(jbig2dec_binary=None, disable_legacy_handling=True)

    def work(file: BinaryIO, options: dict[str, int]) -> bytes:
        reader = pypdf.PdfReader(file)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Refused("encrypted")
        if len(reader.pages) > options["pages"]:
            raise Refused("pages")
        pages, size = [], 0
        for page in reader.pages:
            pages.append(clean(page.extract_text()))
            size += len(pages[-1]) + 2
            if size > options["bytes"]:
                raise Refused("text")
        text = "\n\n".join(pages).strip()
        if not any(char.isalpha() for char in text):  # page numbers alone are no text
            raise Refused("no_text")
        content = text.encode()
        if len(content) > options["bytes"]:
            raise Refused("text")
        return content

    return work


def clean(text: str) -> str:
    """Text that can be sent and stored: no NUL, no halves of characters."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\0", "")


def image_work() -> Work:
    """Load what reads a picture; returns what does it."""
    from PIL import Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin  # noqa: F401

    Image.MAX_IMAGE_PIXELS = None  # looked at below, before anything is decoded

    def work(file: BinaryIO, options: dict[str, int]) -> bytes:
        plain, turn = opened(file, options["pixels"])
        return encoded(turned(plain, turn), options["bytes"])

    return work


def opened(file: BinaryIO, most: int) -> tuple[Any, int]:
    """The picture in RGB, and how the camera was held; what it was made of is free again."""
    from PIL import Image

    image = Image.open(file, formats=("JPEG", "PNG", "WEBP"))
    if image.width * image.height > most:
        raise Refused("pixels")
    if max(image.size) > MAX_SIDE:
        raise Refused("side")
    image.load()  # some formats say at their end how the camera was held
    return flat(image), orientation(image)


def orientation(image: Any) -> int:
    """How the camera was held, 1 to 8 (EXIF 2.3, 4.6.4); 1, upright, where it does not say."""
    from PIL import ExifTags

    try:
        return int(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # EXIF is written by all sorts of programs; the picture stands without
        return 1


def flat(image: Any) -> Any:
    """The same in RGB, on white."""
    from PIL import Image

    if image.mode.startswith("I"):  # 16 bits a pixel, which RGB would cut off
        image = image.convert("I").point(lambda value: value * (1 / 257)).convert("L")
    if not image.has_transparency_data:
        return image if image.mode == "RGB" else image.convert("RGB")
    clear = image if image.mode == "RGBA" else image.convert("RGBA")
    white = Image.new("RGB", clear.size, "white")
    white.paste(clear, mask=clear.getchannel("A"))
    return white


def turned(image: Any, orientation: int) -> Any:
    """Upright."""
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return image.transpose(turns[orientation]) if orientation in turns else image


def encoded(image: Any, most: int) -> bytes:
    """As JPEG of at most so many bytes."""
    image.info = {}  # comments and the like would be written again
    for quality in QUALITIES:
        out = io.BytesIO()
        image.save(out, "JPEG", quality=quality)
        if out.tell() <= most:
            return out.getvalue()
    raise Refused("bytes")


TASKS: dict[str, Callable[[], Work]] = {"pdf": pdf_work, "image": image_work}

if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
