"""A plain HTTP loader: many requests at once, when each had its answer.

    python -m benchmarks.loader URL REQUESTS AT_ONCE [BODY]

One line of JSON: seconds in all, each answer's latency in ms, and the status codes.
"""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import json
import sys
import time
from collections import Counter
from urllib.parse import urlsplit

import gevent
from gevent import socket


def request_bytes(url: str, body: bytes) -> bytes:
    """The request, as it stands on the wire."""
    parts = urlsplit(url)
    method = "POST" if body else "GET"
    head = f"{method} {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


class Connection:
    """One kept connection; reads an answer by its Content-Length or its chunks."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._socket = socket.create_connection((parts.hostname, parts.port))
        self._file = self._socket.makefile("rb")

    def ask(self, request: bytes) -> int:
        """Send, read the whole answer; its status."""
        self._socket.sendall(request)
        status = int(self._file.readline().split()[1])
        length, chunked = 0, False
        while (line := self._file.readline().strip().lower()) != b"":
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            chunked = chunked or line == b"transfer-encoding: chunked"
        if not chunked:
            self._file.read(length)
            return status
        while size := int(self._file.readline(), 16):
            self._file.read(size + 2)
        self._file.readline()
        return status

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def load(url: str, requests: int, at_once: int, body: bytes) -> dict[str, object]:
    """Bounded by the number of requests; connections are made before the clock runs."""
    request = request_bytes(url, body)
    connections = [Connection(url) for _ in range(at_once)]
    left = [requests]
    latencies: list[float] = []
    answered: list[float] = []
    codes: Counter[int] = Counter()

    def work(connection: Connection) -> None:
        while left[0] > 0:
            left[0] -= 1
            began = time.perf_counter()
            codes[connection.ask(request)] += 1
            answered.append(time.monotonic())
            latencies.append((time.perf_counter() - began) * 1000)

    began = time.perf_counter()
    gevent.joinall([gevent.spawn(work, each) for each in connections], raise_error=True)
    took = time.perf_counter() - began
    for connection in connections:
        connection.close()
    return {
        "seconds": took,
        "latencies_ms": sorted(latencies),
        "answered": answered,
        "codes": dict(codes),
    }


def main() -> None:
    url, requests, at_once = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    body = sys.argv[4].encode() if len(sys.argv) > 4 else b""
    print(json.dumps(load(url, requests, at_once, body)))


if __name__ == "__main__":
    main()
