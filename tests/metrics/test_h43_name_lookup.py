"""H43: a StatsD host that is unknown, or whose look-up hangs, must not slow or stop anything."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import gevent
import pytest

from flightsvc.metrics import FLIGHT_CALLERS, Metrics
from tests.metrics.receiver import Receiver

#: counts as requests do while the look-up hangs, says so, goes on until its input is closed
PROGRAM = """
from gevent import monkey
monkey.patch_all()
import json, sys, time
import gevent.os
from flightsvc.metrics import FLIGHT_CALL_TIME, FLIGHT_CALLERS, Metrics

metrics = Metrics("statsd.example", int(sys.argv[1]), flush_ms=100)
began = time.monotonic()
metrics.start()
for _ in range(200):
    metrics.count(FLIGHT_CALLERS, stage="chat")
    metrics.time(FLIGHT_CALL_TIME, 0.1, stage="chat")
    gevent.sleep(0)
print(json.dumps({"seconds": time.monotonic() - began}), flush=True)
gevent.os.tp_read(0, 1)
metrics.close()
"""


class NameServer:
    """A real DNS server: silent until ``answering`` is set, then every A is 127.0.0.1."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.asked = 0
        self.answering = False
        self._loop = gevent.spawn(self._serve)

    def _serve(self) -> None:
        while True:
            query, asker = self._socket.recvfrom(4096)
            self.asked += 1
            if self.answering:
                self._socket.sendto(self._reply(query), asker)

    @staticmethod
    def _reply(query: bytes) -> bytes:
        end = query.index(b"\0", 12) + 5  # name, type, class
        is_a = query[end - 4 : end - 2] == b"\0\1"
        header = query[:2] + b"\x81\x80" + b"\0\1" + (b"\0\1" if is_a else b"\0\0") + b"\0" * 4
        answer = b"\xc0\x0c\0\1\0\1" + b"\0\0\0\x3c" + b"\0\4" + bytes([127, 0, 0, 1])
        return header + query[12:end] + (answer if is_a else b"")

    def close(self) -> None:
        self._loop.kill()
        self._socket.close()


@pytest.fixture
def name_server() -> Iterator[NameServer]:
    one = NameServer()
    yield one
    one.close()


def start_program(name_server: NameServer, port: int) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "GEVENT_RESOLVER": "ares",  # the one of gevent's resolvers that can be given a port
        "GEVENTARES_SERVERS": "127.0.0.1",
        "GEVENTARES_UDP_PORT": str(name_server.port),
        "GEVENTARES_TIMEOUT": "1",
        "GEVENTARES_TRIES": "2",
    }
    command = [sys.executable, "-c", PROGRAM, str(port)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)


def test_h43_an_unknown_host_costs_nothing_and_loses_nothing() -> None:
    metrics = Metrics("nosuchhost.invalid", flush_ms=100)
    began = time.monotonic()
    metrics.start()
    for _ in range(200):
        metrics.count(FLIGHT_CALLERS, stage="chat")
        gevent.sleep(0)
    assert time.monotonic() - began < 200 * 0.005
    gevent.sleep(0.3)
    began = time.monotonic()
    metrics.close()
    assert time.monotonic() - began < 2
    assert metrics.snapshot() == {"flight.callers.chat": 200}


@pytest.mark.parametrize("host", ["bad host", "x" * 300, "a..b", "\0", "nosuch\n.invalid", "[::1"])
def test_h43_a_host_that_is_no_name_does_not_stop_the_service(host: str) -> None:
    metrics = Metrics(host, flush_ms=100)
    metrics.start()
    gevent.sleep(0.05)
    metrics.count(FLIGHT_CALLERS, stage="chat")
    metrics.close()
    assert metrics.snapshot() == {"flight.callers.chat": 1}


def test_h43_a_look_up_that_hangs_delays_nobody_and_may_come_back(
    name_server: NameServer, receiver: Receiver
) -> None:
    program = start_program(name_server, receiver.port)
    assert program.stdin is not None
    assert program.stdout is not None
    try:
        told = json.loads(program.stdout.readline())
        assert told["seconds"] < 200 * 0.005
        receiver.wait(lambda: name_server.asked)
        assert not receiver.datagrams
        name_server.answering = True
        receiver.wait(lambda: "flightsvc.flight.call_time.chat" in receiver.totals(), 20)
        expected = {"flightsvc.flight.callers.chat": 200, "flightsvc.flight.call_time.chat": 200}
        receiver.wait(lambda: receiver.totals() == pytest.approx(expected))
    finally:
        program.stdin.close()
        assert program.wait(10) == 0
        program.stdout.close()


def test_h43_the_process_ends_at_once_while_the_look_up_hangs(
    name_server: NameServer, receiver: Receiver
) -> None:
    program = start_program(name_server, receiver.port)
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdout.readline()
    receiver.wait(lambda: name_server.asked)
    began = time.monotonic()
    program.stdin.close()
    assert program.wait(10) == 0
    assert time.monotonic() - began < 5
    program.stdout.close()
