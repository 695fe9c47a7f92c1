"""Starting and ending the service: who may reach it, what it prints, what it leaves."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import sys
from pathlib import Path

import pytest

from tests.processes import alive, answers, wait_until
from tests.service.gunicorn_master import Master
from tests.support.service import ask

TOKENS = {"FLIGHTSVC_API_TOKENS": '{"t0ken": "acme"}'}


def refused(master: Master) -> str:
    """What a service says that does not start."""
    try:
        assert master.launch().wait() == 1
        assert "Traceback" not in master.log()
        assert not master.valkeys()
        assert master.leftovers() == []
        return master.log()
    finally:
        master.close()


def test_a_wrong_setting_ends_the_start_with_its_name_and_no_traceback() -> None:
    said = refused(Master({"FLIGHTSVC_HEARTBEAT_MS": "soon"}))
    assert "FLIGHTSVC_HEARTBEAT_MS" in said


@pytest.mark.parametrize("bind", ["0.0.0.0:0", "[::]:0", ":0"])
def test_without_tokens_a_public_address_is_refused_also_by_option(bind: str) -> None:
    said = refused(Master(options=("-b", "127.0.0.1:0", "-b", bind)))
    assert "FLIGHTSVC_API_TOKENS" in said
    assert "Listening at" not in said


def test_without_tokens_an_inherited_public_socket_is_refused() -> None:
    """systemd, or an older master over USR2, hands sockets down, whatever the settings say."""
    with socket.create_server(("0.0.0.0", 0)) as public:
        hand = (
            "import os, sys; os.dup2(int(sys.argv[1]), 3, inheritable=True)\n"
            "env = {**os.environ, 'LISTEN_PID': str(os.getpid()), 'LISTEN_FDS': '1'}\n"
            "os.execve(sys.argv[2], sys.argv[2:], env)"
        )
        master = Master()
        number = public.fileno()
        master.prefix((sys.executable, "-c", hand, str(number)), pass_fds=(number,))
        assert "FLIGHTSVC_API_TOKENS" in refused(master)


def test_with_tokens_any_address_is_served() -> None:
    with Master(TOKENS, options=("-b", "0.0.0.0:0")) as master:
        assert master.get().status == 200


def test_a_unix_socket_needs_no_tokens(tmp_path: Path) -> None:
    path = tmp_path / "web.sock"
    master = Master(options=("-b", f"unix:{path}"))
    try:
        master.launch()
        wait_until(path.exists)
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(10)
            client.connect(str(path))
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert client.recv(64).startswith(b"HTTP/1.1 200")
        assert master.end() == 0
    finally:
        master.close()


def test_the_printed_line_is_a_request_that_works() -> None:
    env = {"_FLIGHTSVC_HINTS": "1", "FLIGHTSVC_SIMULATED_LATENCY_MS": "10"}
    with Master(env, app="wsgi:app") as master:
        line = next(text for text in master.log().split("\n") if text.startswith("  curl "))
        words = shlex.split(line)
        url = next(word for word in words if word.startswith("http://"))
        body = words[words.index("-d") + 1]
        headers = dict([words[words.index("-H") + 1].split(": ")])
        reply = ask(url, "POST", body=body.encode(), headers=headers)
        assert reply.status == 200, reply.body
        assert reply.headers["flight-role"] == "owner"


def test_ctrl_c_leaves_no_process_and_no_file() -> None:
    with Master(app="wsgi:app") as master:
        everybody = {*master.in_session(), *master.valkeys().values()}
        assert len(master.valkeys()) == 1
        os.killpg(master.pid, signal.SIGINT)  # as a terminal does: everybody gets it
        assert master.wait() == 0
        assert [pid for pid in everybody if alive(pid)] == []
        assert master.leftovers() == []
        assert "Traceback" not in master.log()


def test_a_killed_master_takes_everything_along() -> None:
    with Master() as master:
        (server,) = master.valkeys().values()
        workers = master.children()
        master.send(signal.SIGKILL)
        master.wait()
        wait_until(lambda: not alive(server) and not any(alive(pid) for pid in workers))
        wait_until(lambda: master.leftovers() == [])


def test_a_dead_valkey_comes_back_where_workers_look_for_it() -> None:
    with Master() as master:
        ((path, server),) = master.valkeys().items()
        assert master.told()["valkey"] == f"unix://{path}"
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: not alive(server) and answers(path))
        assert master.valkeys()[path] != server


def test_a_killed_supervisor_comes_back_with_its_valkey() -> None:
    with Master() as master:
        ((path, server),) = master.valkeys().items()
        supervisor = int(Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(supervisor, signal.SIGKILL)
        wait_until(lambda: not alive(server) and answers(path))
        assert master.valkeys()[path] != server
        wait_until(lambda: "supervisor was killed" in master.log())
        # and it ends with the master as before
        assert master.end() == 0
        assert master.leftovers() == []


def test_closing_the_terminal_of_make_run_ends_it() -> None:
    with Master({"_FLIGHTSVC_HINTS": "1"}) as master:
        master.send(signal.SIGHUP)
        assert master.wait() == 0
        assert master.leftovers() == []


@pytest.mark.parametrize("env", [{"FLIGHTSVC_MODE": "local"}, {"FLIGHTSVC_REDIS_URL": "redis://x"}])
def test_no_valkey_starts_where_none_is_wanted(env: dict[str, str]) -> None:
    with Master(env) as master:
        assert master.told()["valkey"] is None
        assert master.leftovers() == []
