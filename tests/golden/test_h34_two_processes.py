"""H34: the breaker of two workers, each a process, with the lease and the hints in Redis."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.golden.guarding import PROGRAM
from tests.processes import ROOT
from tests.support.redis_server import RedisServer


class Worker:
    """One process."""

    def __init__(self, url: str, namespace: str, model: str, reset_s: float) -> None:
        words = [sys.executable, "-c", PROGRAM, url, namespace, model, str(reset_s)]
        self.process = subprocess.Popen(
            words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._line() == "ready"

    def send(self, calls: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{calls}\n")
        self.process.stdin.flush()

    def heard(self) -> list[Any]:
        found: list[Any] = json.loads(self._line())
        return found

    def call(self, calls: int) -> list[Any]:
        self.send(calls)
        return self.heard()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@pytest.fixture
def start(
    redis_server: RedisServer, namespace: str, model_server: ModelServerProcess
) -> Iterator[Callable[[float], Worker]]:
    model_server.reset()
    started: list[Worker] = []

    def worker(reset_s: float) -> Worker:
        started.append(Worker(redis_server.url, namespace, model_server.base_url, reset_s))
        return started[-1]

    yield worker
    for each in started:
        each.close()


def down_then_gated(model: ModelServerProcess) -> None:
    """Five failures, then answers that wait at the gate."""
    model.script(
        [
            {"match": {"times": 5}, "behave": {"status": 500}},
            {"match": {}, "behave": {"gate": "go", "answer": "text", "text": "back"}},
        ]
    )


def test_h34_twenty_calls_over_two_workers_are_one_probe(
    start: Callable[[float], Worker], model_server: ModelServerProcess
) -> None:
    first, second = start(2.0), start(2.0)
    down_then_gated(model_server)
    first.call(5)
    gevent.sleep(1.2)
    # the second worker has not called at all, and knows
    assert [code for code, *_ in second.call(3)] == ["CIRCUIT_OPEN"] * 3
    assert model_server.stats()["calls"] == 5
    gevent.sleep(1.2)

    first.send(10)
    second.send(10)
    model_server.until(open_calls=1)
    gevent.sleep(0.3)
    assert model_server.stats()["calls"] == 6
    model_server.open_gate("go")
    told = first.heard() + second.heard()

    refused = [each for each in told if each[0]]
    assert [code for code, *_ in refused] == ["CIRCUIT_OPEN"] * 19
    assert all(retry_after_s > 0 for *_, retry_after_s in refused)
    assert max(took_s for _, took_s, _ in refused) < 0.1  # at once; the probe took longer
    assert model_server.stats()["calls"] == 6


def test_h34_a_target_that_is_back_is_back_for_the_other_worker_too(
    start: Callable[[float], Worker], model_server: ModelServerProcess
) -> None:
    first, second = start(1.0), start(1.0)
    down_then_gated(model_server)
    model_server.open_gate("go")
    first.call(5)
    gevent.sleep(0.8)
    assert second.call(1)[0][0] == "CIRCUIT_OPEN"
    gevent.sleep(0.4)
    assert first.call(1)[0][0] == ""
    gevent.sleep(1.0)
    assert [code for code, *_ in second.call(10)] == [""] * 10


def test_h34_the_prober_is_killed_and_a_new_probe_is_allowed_soon(
    start: Callable[[float], Worker], model_server: ModelServerProcess
) -> None:
    first, second = start(1.0), start(1.0)
    down_then_gated(model_server)
    first.call(5)
    gevent.sleep(1.2)
    first.send(1)
    model_server.until(open_calls=1)
    assert second.call(1)[0][0] == "CIRCUIT_OPEN"
    first.process.kill()
    model_server.open_gate("go")
    end = time.monotonic() + 5
    while second.call(1)[0][0]:
        assert time.monotonic() < end
        gevent.sleep(0.1)
