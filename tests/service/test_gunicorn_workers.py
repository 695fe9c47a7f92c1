"""Workers: their numbers, their user, and what they share with each other (nothing)."""

from __future__ import annotations

import contextlib
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from flightsvc import app
from flightsvc.serving import worker
from tests.processes import alive, ask, wait_until
from tests.service.gunicorn_master import Master
from tests.support.service import post_json


def sockets(pid: int) -> set[str]:
    """The sockets that a process has open, by inode."""
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.readlink(entry))
    return {name for name in found if name.startswith("socket:")}


def slots(master: Master, workers: int) -> dict[str, int]:
    """Number → process id of every worker."""
    found: dict[str, int] = {}

    def complete() -> bool:
        said = master.told()
        found[said["slot"]] = said["pid"]
        return len(found) == workers

    wait_until(complete)
    return found


def test_workers_have_the_lowest_free_numbers() -> None:
    with Master({"FLIGHTSVC_WORKERS": "3"}) as master:
        first = slots(master, 3)
        assert set(first) == {"0", "1", "2"}
        os.kill(first["1"], signal.SIGKILL)
        wait_until(lambda: not alive(first["1"]) and len(master.children()) == 3)
        wait_until(lambda: slots(master, 3)["1"] != first["1"])


def test_the_master_forks_workers_without_threads_of_its_own() -> None:
    with Master(options=("-b", "localhost:0"), app="wsgi:app") as master:
        assert len(list(Path(f"/proc/{master.pid}/task").iterdir())) == 1


def test_app_and_worker_mean_the_same_variable() -> None:
    assert worker.EMBEDDED_URL == app.EMBEDDED_URL


def ask_often(master: Master, count: int) -> set[int]:
    url = master.url + "/v1/interviews/s/evaluations"

    def one(number: int) -> int:
        body = {"question_number": 1, "question": "What is a lock?", "answer": f"It {number}."}
        return post_json(url, body).status

    with ThreadPoolExecutor(count) as pool:
        return set(pool.map(one, range(count)))


def test_h20_with_preload_no_socket_of_the_master_is_shared_by_two_workers() -> None:
    env = {"FLIGHTSVC_WORKERS": "3", "FLIGHTSVC_SIMULATED_LATENCY_MS": "100"}
    with Master(env, options=("--preload",), app="wsgi:app") as master:
        assert ask_often(master, 60) == {200}
        listening = sockets(master.pid)
        assert len(listening) == 1
        own = [sockets(worker) - listening for worker in master.children()]
        assert len(own) == 3
        assert sum(map(len, own)) > 0
        for number, mine in enumerate(own):
            for others in own[number + 1 :]:
                assert not mine & others


def test_a_term_lets_a_running_answer_end() -> None:
    env = {"FLIGHTSVC_SIMULATED_LATENCY_MS": "2500", "FLIGHTSVC_GRACE_S": "10"}
    with Master(env, app="wsgi:app") as master, ThreadPoolExecutor(1) as pool:
        (valkey,) = master.valkeys()
        answers = pool.submit(ask_often, master, 6)
        wait_until(lambda: ask(valkey, "KEYS *:meta:*").startswith(b"*6\r\n"))
        master.send(signal.SIGTERM)
        assert answers.result() == {200}
        assert master.wait() == 0
