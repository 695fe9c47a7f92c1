"""The process that reads a file: what it has, and that it is gone afterwards, whatever happens."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gevent
import PIL
import pytest

from flightsvc.errors import NoText, Overloaded
from flightsvc.files import FileStore, ReadLimits, read_image, read_pdf
from flightsvc.files.child import PROGRAM, Child, Order
from flightsvc.metrics import Metrics
from tests.files import samples
from tests.files.conftest import Read
from tests.processes import alive, run_python, wait_until

#: some seconds of work
LONG = samples.long_pdf(150_000, pages=20)

OWNER = """
from gevent import monkey; monkey.patch_all()
import sys
from pathlib import Path
from flightsvc.files import ReadLimits, read_pdf
from flightsvc.settings import Settings
print("begins", flush=True)
read_pdf(Path(sys.argv[1]), ReadLimits.of(Settings(mode="local")))
"""


def readers(parent: int | None = None) -> set[int]:
    """The living children of a process, by default this one, that read files."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes()
            if int(fields[1]) == (parent or os.getpid()) and str(PROGRAM).encode() in command:
                found.add(int(folder.name))
    return found


@pytest.fixture
def path(store: FileStore) -> Path:
    kept = store.put([LONG], limit=1 << 24)
    with store.path(kept.digest) as path:
        return path


def started(call: Callable[..., Any], *arguments: object) -> tuple[Any, int]:
    """A reader at work, and the process id of its process."""
    reader = gevent.spawn(call, *arguments)
    wait_until(readers)
    (pid,) = readers()
    return reader, pid


def confined(pid: int) -> bool:
    """Whether it has loaded what it needs and begun to read."""
    with suppress(OSError):
        return "Max processes             0" in Path(f"/proc/{pid}/limits").read_text()
    return False


def test_it_has_nothing_but_the_file(path: Path, limits: ReadLimits) -> None:
    mine, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    with path.open("rb") as held:
        os.set_inheritable(held.fileno(), True)
        reader, pid = started(read_pdf, path, limits)
        wait_until(lambda: confined(pid))

        proc = Path(f"/proc/{pid}")
        assert {entry.name for entry in (proc / "fd").iterdir()} == {"0", "1", "2"}
        assert os.readlink(proc / "fd/0") == str(path)
        assert (proc / "environ").read_bytes() == b""
        said = (proc / "limits").read_text()
        assert str(limits.memory_bytes) in said.partition("Max address space")[2].splitlines()[0]
        assert os.getpgid(pid) != os.getpgid(0), "a Ctrl-C would reach it"
    reader.kill()
    os.close(mine)
    os.close(theirs)


def test_a_caller_that_is_killed_takes_it_along(path: Path, limits: ReadLimits) -> None:
    limits = replace(limits, at_once=1)
    for moment in (alive, confined):
        reader, pid = started(read_pdf, path, limits)
        wait_until(partial(moment, pid))
        reader.kill()
        assert not alive(pid)
        assert not Path(f"/proc/{pid}").exists(), "it was not reaped"
    small = path.with_name("blank")
    small.write_bytes(samples.blank_pdf())
    with pytest.raises(NoText):  # its place is free again
        read_pdf(small, limits)


def test_its_time_by_the_clock_is_limited_too(path: Path, limits: ReadLimits) -> None:
    reader, pid = started(read_pdf, path, replace(limits, clock_s=1))
    os.kill(pid, signal.SIGSTOP)

    with pytest.raises(Overloaded) as raised:
        reader.get(timeout=20)

    assert raised.value.retry_after_s == limits.timeout_s
    assert not Path(f"/proc/{pid}").exists()


def test_a_worker_that_is_killed_takes_it_along(path: Path) -> None:
    owner = run_python(OWNER, str(path))
    wait_until(lambda: readers(owner.pid))
    (pid,) = readers(owner.pid)
    wait_until(lambda: confined(pid))

    owner.kill()
    owner.wait(10)

    wait_until(lambda: not alive(pid))


def test_its_computing_time_is_limited_by_the_kernel(path: Path, limits: ReadLimits) -> None:
    _, pid = started(read_pdf, path, replace(limits, timeout_s=1, clock_s=60))
    wait_until(lambda: confined(pid))

    rows = Path(f"/proc/{pid}/limits").read_text().splitlines()
    (row,) = [row for row in rows if row.startswith("Max cpu time")]
    assert int(row.split()[3]) <= 3
    wait_until(lambda: not alive(pid))


def test_a_process_killed_by_the_machine_is_the_files_fault(
    path: Path, limits: ReadLimits
) -> None:
    reader, pid = started(read_pdf, path, limits)
    wait_until(lambda: confined(pid))
    os.kill(pid, signal.SIGKILL)

    with pytest.raises(Exception, match="more memory"):
        reader.get(timeout=20)


def test_so_many_at_once_and_no_more(read: Read) -> None:
    content = samples.long_pdf(8_000)
    callers = [gevent.spawn(read, read_pdf, content, at_once=3) for _ in range(9)]
    most = 0
    while not all(caller.ready() for caller in callers):
        most = max(most, len(readers()))
        gevent.sleep(0.01)

    assert {caller.get()[:4] for caller in callers} == {"word"}
    assert 1 <= most <= 3
    assert readers() == set()


def test_who_waits_too_long_for_a_place_is_told(path: Path, limits: ReadLimits) -> None:
    limits = replace(limits, at_once=1)
    holder, pid = started(read_pdf, path, limits)
    os.kill(pid, signal.SIGSTOP)

    with pytest.raises(Overloaded, match="Too many files"):
        read_pdf(path, replace(limits, clock_s=0.1))

    holder.kill()
    assert readers() == set()


def test_a_process_that_cannot_begin_is_not_the_files_fault(path: Path) -> None:
    order = Order("image", path, {"pixels": 1, "bytes": 1}, 5, 15, 24 << 20)
    with pytest.raises(RuntimeError, match="could not begin"), Child(order) as child:
        child.answer()
    assert readers() == set()


def test_its_start_blocks_nobody(read: Read) -> None:
    gaps = []

    def tick() -> None:
        while True:
            before = time.perf_counter()
            gevent.sleep(0.005)
            gaps.append(time.perf_counter() - before)

    ticker = gevent.spawn(tick)
    for _ in range(5):
        read(read_image, samples.picture("PNG"))
    ticker.kill()

    assert max(gaps) < 0.5


def test_files_and_threads_are_given_back(read: Read) -> None:
    read(read_image, samples.picture("PNG"))
    before = (len(os.listdir("/proc/self/fd")), threading.active_count())
    for _ in range(10):
        read(read_image, samples.picture("PNG"))
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before


def test_reads_are_counted(store: FileStore, limits: ReadLimits) -> None:
    metrics = Metrics.off()
    kept = store.put([samples.blank_pdf()], limit=1 << 20)
    with store.path(kept.digest) as path, pytest.raises(NoText):
        read_pdf(path, limits, metrics)
    assert metrics.snapshot()["files.reads.pdf.NO_TEXT"] == 1


def test_it_finds_its_libraries_wherever_they_are(tmp_path: Path, store: FileStore) -> None:
    """Not on a site's path, as in a bundle: the parent's own path is what counts."""
    site = Path(PIL.__path__[0]).parent
    for package in ("PIL", "pillow.libs"):
        if (site / package).is_dir():
            shutil.copytree(site / package, tmp_path / "lib" / package)
    kept = store.put([samples.picture("PNG")], limit=1 << 20)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "from gevent import monkey; monkey.patch_all(); from pathlib import Path; "
        "from flightsvc.files import ReadLimits, read_image; "
        "from flightsvc.settings import Settings; "
        "print(len(read_image(Path(sys.argv[2]), ReadLimits.of(Settings(mode='local')))))"
    )
    with store.path(kept.digest) as path:
        command = [sys.executable, "-c", code, str(tmp_path / "lib"), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert int(done.stdout) > 100, done.stderr
