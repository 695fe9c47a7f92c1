"""The content-addressed store: whole files or none, whoever dies meanwhile."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import gevent
import pytest
from gevent.event import Event

from flightsvc.errors import NotFound, PayloadTooLarge, SettingsError
from flightsvc.files import FileStore, open_file_store
from flightsvc.settings import Settings
from tests.processes import run_python

CONTENT = random.Random(1).randbytes(300_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()

WRITER = """
from gevent import monkey; monkey.patch_all()
import sys, gevent
from flightsvc.files import open_file_store
from flightsvc.settings import Settings

def chunks():
    yield b"a" * 100_000
    print("half", flush=True)
    sys.stdin.readline()
    yield b"b" * 100_000

stored = open_file_store(Settings(mode="local", data_dir=sys.argv[1])).put(chunks(), limit=10**6)
print(stored.digest, flush=True)
"""


def pieces(content: bytes, size: int = 7_777) -> Iterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


def files(folder: Path) -> list[str]:
    """Everything that lies in the store, drafts too."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def open_below(folder: Path) -> list[str]:
    """What of it this process has open."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(os.readlink(link))
    return [name for name in found if name.startswith(str(folder))]


def test_a_file_is_kept_under_its_hash(store: FileStore, folder: Path) -> None:
    kept = store.put(pieces(CONTENT), limit=len(CONTENT))

    assert (kept.digest, kept.size) == (DIGEST, len(CONTENT))
    assert DIGEST in store
    assert files(folder) == [DIGEST]
    with store.open(DIGEST) as file:
        assert file.read(10) == CONTENT[:10]
        assert file.read() == CONTENT[10:]
    with store.path(DIGEST) as path:
        assert path.is_absolute()
        assert path.read_bytes() == CONTENT


def test_only_its_user_can_look_into_it(store: FileStore, folder: Path) -> None:
    store.put([CONTENT], limit=1 << 20)

    modes = {path.stat().st_mode & 0o777 for path in [folder, *folder.rglob("*")] if path.is_dir()}
    assert modes == {0o700}
    with store.path(DIGEST) as path:
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_over_the_limit_is_not_kept(store: FileStore, folder: Path) -> None:
    asked = []

    def chunks() -> Iterator[bytes]:
        for number in range(1_000):
            asked.append(number)
            yield b"x" * 1_000

    with pytest.raises(PayloadTooLarge):
        store.put(chunks(), limit=10_000)

    assert len(asked) == 11
    assert files(folder) == []


def test_whoever_feeds_it_can_refuse_a_file_to_the_last(store: FileStore, folder: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield CONTENT
        raise ValueError("after all")

    with pytest.raises(ValueError, match="after all"):
        store.put(chunks(), limit=1 << 20)

    assert files(folder) == []


def test_a_caller_that_is_killed_leaves_nothing(store: FileStore, folder: Path) -> None:
    began = Event()

    def chunks() -> Iterator[bytes]:
        yield CONTENT
        began.set()
        gevent.sleep(60)
        yield CONTENT

    caller = gevent.spawn(store.put, chunks(), limit=1 << 20)
    assert began.wait(10)
    assert len(files(folder)) == 1
    caller.kill()

    assert files(folder) == []


def test_callers_killed_at_any_moment_leave_whole_files_only(
    store: FileStore, folder: Path
) -> None:
    for delay in range(40):
        caller = gevent.spawn(store.put, pieces(CONTENT, 50_000), limit=1 << 20)
        gevent.sleep(delay / 10_000)
        caller.kill()
        assert set(files(folder)) <= {DIGEST}
        if DIGEST in store:
            with store.path(DIGEST) as path:
                assert path.read_bytes() == CONTENT
        store.delete(DIGEST)
    assert open_below(folder) == []


def test_a_crash_in_the_middle_leaves_no_half_file(settings: Settings, folder: Path) -> None:
    writers = [run_python(WRITER, settings.data_dir) for _ in range(2)]
    assert [writer.stdout and writer.stdout.readline() for writer in writers] == ["half\n"] * 2
    assert len(files(folder)) == 2
    crashed, alive = writers

    crashed.send_signal(signal.SIGKILL)
    crashed.wait(10)
    store = open_file_store(settings)

    assert len(files(folder)) == 1, "the draft of a writer that lives stays, the other's goes"
    said, _ = alive.communicate("go on\n", timeout=20)
    assert files(folder) == [said.strip()]
    with store.path(said.strip()) as path:
        assert path.read_bytes() == b"a" * 100_000 + b"b" * 100_000
    store.close()


def test_the_same_file_at_once_is_one_file(
    store: FileStore, settings: Settings, folder: Path
) -> None:
    other = open_file_store(settings)
    callers = [
        gevent.spawn(each.put, pieces(CONTENT, size), limit=1 << 20)
        for size in (1_000, 5_000, 20_000, 300_000)
        for each in (store, other)
    ]

    kept = {caller.get(timeout=30) for caller in callers}

    assert {each.digest for each in kept} == {DIGEST}
    assert files(folder) == [DIGEST]
    with store.path(DIGEST) as path:
        assert path.read_bytes() == CONTENT
    other.close()


def test_a_put_repairs_what_somebody_changed(store: FileStore) -> None:
    store.put([CONTENT], limit=1 << 20)
    with store.path(DIGEST) as path:
        path.write_bytes(b"junk")

    store.put([CONTENT], limit=1 << 20)

    with store.open(DIGEST) as file:
        assert file.read() == CONTENT


def test_deleting_forgets_it_now(store: FileStore, folder: Path) -> None:
    store.put([CONTENT], limit=1 << 20)
    with store.open(DIGEST) as file:
        assert store.delete(DIGEST)
        assert file.read() == CONTENT, "who has it open reads on"

    assert DIGEST not in store
    assert not store.delete(DIGEST)
    assert files(folder) == []
    with pytest.raises(NotFound):
        store.open(DIGEST)
    with pytest.raises(NotFound), store.path(DIGEST):
        pass


@pytest.mark.parametrize(
    "name",
    ["", "..", "../" * 8 + "etc/passwd", DIGEST.upper(), DIGEST[:-1], DIGEST + "\n", "é" * 64],
    ids=["empty", "parent", "path", "upper case", "short", "line end", "not ASCII"],
)
def test_what_is_no_hash_is_no_file(store: FileStore, name: str) -> None:
    assert name not in store
    assert not store.delete(name)
    with pytest.raises(NotFound):
        store.open(name)
    with pytest.raises(NotFound), store.path(name):
        pass


def test_files_are_as_old_as_their_last_put(store: FileStore) -> None:
    old, new = (store.put([text], limit=100).digest for text in (b"old", b"new"))
    for digest in (old, new):
        with store.path(digest) as path:
            os.utime(path, (time.time() - 1_000,) * 2)
    store.put([b"new"], limit=100)

    assert store.older_than(500) == [old]
    assert store.older_than(2_000) == []


def test_a_folder_that_cannot_be_written_to_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")

    with pytest.raises(SettingsError, match="FLIGHTSVC_DATA_DIR"):
        open_file_store(Settings(mode="local", data_dir=str(tmp_path / "file")))


def test_a_full_disk_leaves_nothing(settings: Settings, folder: Path) -> None:
    code = WRITER.replace(
        "stored =",
        "import resource, signal\nresource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))\n"
        "stored =",
    )
    writer = run_python(code, settings.data_dir)
    writer.communicate("\n", timeout=20)

    assert writer.returncode == 1
    assert files(folder) == []


def test_the_hub_goes_on_meanwhile(store: FileStore) -> None:
    gaps = []

    def tick() -> None:
        while True:
            before = time.perf_counter()
            gevent.sleep(0.005)
            gaps.append(time.perf_counter() - before)

    ticker = gevent.spawn(tick)
    callers = [
        gevent.spawn(store.put, pieces(os.urandom(8_000_000), 65_536), limit=1 << 24)
        for _ in range(4)
    ]
    gevent.joinall(callers, raise_error=True)
    ticker.kill()

    assert gaps
    assert max(gaps) < 0.5
