"""Hub lag and memory: what holds up a worker is seen, and nothing else."""

from __future__ import annotations

import time

import gevent
import pytest

from flightsvc.metrics import Metrics, ProcessWatch
from flightsvc.metrics.process import SHOWN_S, memory_bytes
from tests.metrics.receiver import Receiver


@pytest.fixture
def watch():
    one = ProcessWatch(Metrics.off())
    one.start()
    yield one
    one.close()


def block(seconds: float) -> None:
    """Compute, and let nobody else have a turn."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def test_a_blocked_hub_is_seen_while_it_lasts_and_for_a_while_after(watch: ProcessWatch) -> None:
    gevent.sleep(0.15)
    block(0.5)
    assert watch.lag_ms() >= 350  # the look that is overdue counts
    gevent.sleep(0.25)
    assert watch.lag_ms() >= 350
    assert watch.lag_ms() >= 350, "looking changes nothing"


def test_a_lag_is_forgotten(watch: ProcessWatch) -> None:
    gevent.sleep(0.15)
    block(0.6)
    gevent.sleep(0.2)
    seen = watch.lag_ms()
    gevent.sleep(SHOWN_S + 0.3)
    assert watch.lag_ms() < seen


def test_waiting_is_no_lag(watch: ProcessWatch) -> None:
    gevent.sleep(0.5)
    assert watch.lag_ms() >= 0
    watch.close()
    gevent.sleep(0.3)
    watch.close()


def test_memory_is_what_the_system_says() -> None:
    before = memory_bytes()
    held = bytearray(64 * 1024 * 1024)
    held[::4096] = b"x" * len(held[::4096])
    assert memory_bytes() - before > 48 * 1024 * 1024
    assert memory_bytes() < 64e9


def test_both_go_out_under_the_worker_s_number(receiver: Receiver) -> None:
    metrics = Metrics("127.0.0.1", receiver.port, flush_ms=50, worker="3")
    watch = ProcessWatch(metrics)
    metrics.start()
    watch.start()
    receiver.wait(lambda: receiver.values("flightsvc.process.hub_lag.3", "g"))
    assert receiver.values("flightsvc.process.memory.3", "g")[0] > 1e6
    watch.close()
    metrics.close()
