"""A real StatsD receiver: a UDP socket that keeps every datagram."""

from __future__ import annotations

import socket
import time
from collections import defaultdict
from collections.abc import Callable

import gevent


class Receiver:
    """Receives on a free port of 127.0.0.1.

    :ivar datagrams: what came, in order.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * 1024 * 1024)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.datagrams: list[bytes] = []
        self._loop = gevent.spawn(self._receive)

    def _receive(self) -> None:
        while True:
            self.datagrams.append(self._socket.recv(65_536))

    @property
    def lines(self) -> list[str]:
        return [line for one in self.datagrams for line in one.decode("ascii").split("\n")]

    def values(self, name: str, kind: str) -> list[float]:
        """The values of a name, in order; ``kind`` is c, ms or g."""
        found = []
        for line in self.lines:
            key, _, rest = line.partition(":")
            value, line_kind = rest.split("|")[:2]
            if key == name and line_kind == kind:
                found.append(float(value))
        return found

    def totals(self) -> dict[str, float]:
        """What a StatsD server would have counted: sums of counters, numbers of timings."""
        totals: dict[str, float] = defaultdict(float)
        for line in self.lines:
            name, _, rest = line.partition(":")
            value, kind, *rate = rest.split("|")
            weight = 1 / float(rate[0].removeprefix("@")) if rate else 1
            if kind == "c":
                totals[name] += float(value)
            elif kind == "ms":
                totals[name] += weight
        return dict(totals)

    def wait(self, met: Callable[[], object], timeout_s: float = 10) -> None:
        """Until the condition holds; fails the test if it does not."""
        end = time.monotonic() + timeout_s
        while not met():
            assert time.monotonic() < end, f"not met after {timeout_s} s; got {self.lines[-20:]}"
            gevent.sleep(0.01)

    def close(self) -> None:
        self._loop.kill()
        self._socket.close()
