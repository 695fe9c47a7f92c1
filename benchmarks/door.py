"""What the measurement of the OpenAI door needs: two nodes, callers that stream, their CPU time."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import gevent
import redis

from benchmarks import servers
from flightsvc.model_server.process import ModelServerProcess

TICKS = os.sysconf("SC_CLK_TCK")


class Asker:
    """One streaming caller: when its first chunk came, and all that came."""

    def __init__(self, url: str, text: str) -> None:
        body = {"model": "m", "messages": [{"role": "user", "content": text}], "stream": True}
        data = json.dumps(body).encode()
        parts = urlsplit(url)
        self._address = (parts.hostname, parts.port)
        self._request = (
            f"POST {parts.path}/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        ).encode() + data
        self.pieces: list[bytes] = []
        self.asked_at = self.first_at = self.ended_at = 0.0
        self._greenlet = gevent.spawn(self._ask)

    def _ask(self) -> None:
        with socket.create_connection(self._address) as sock:
            self.asked_at = time.perf_counter()
            sock.sendall(self._request)
            while piece := sock.recv(65_536):
                if not self.first_at and b"data: " in piece:
                    self.first_at = time.perf_counter()
                self.pieces.append(piece)
        self.ended_at = time.perf_counter()

    @property
    def first_ms(self) -> float:
        """From asking to the first chunk."""
        return (self.first_at - self.asked_at) * 1000

    def end(self) -> str:
        """The whole text, once it is there."""
        self._greenlet.join()
        lines = unchunked(b"".join(self.pieces)).split("\n")
        data = [line[6:] for line in lines if line.startswith("data: {")]
        chunks = [json.loads(each) for each in data]
        return "".join(each["choices"][0]["delta"].get("content", "") for each in chunks)


class Door:
    """The two nodes and what stands around them."""

    def __init__(self, model: ModelServerProcess, urls: list[str], redis_url: str) -> None:
        self.model = model
        self.urls = urls
        self._redis: Any = redis.Redis.from_url(redis_url)

    def commands(self) -> dict[str, int]:
        """What Valkey was asked so far, by command."""
        stats = self._redis.info("commandstats")
        return {name.removeprefix("cmdstat_"): each["calls"] for name, each in stats.items()}


@contextlib.contextmanager
def door() -> Iterator[Door]:
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(servers.redis_server())
        model = stack.enter_context(ModelServerProcess())
        settings = {
            "REDIS_URL": url,
            "PROVIDER": "openai",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_MODEL": "m",
            "STAGES__CHAT__CONCURRENCY": "2000",
        }
        urls = [
            stack.enter_context(servers.service(workers=1, **settings)) + "/v1" for _ in range(2)
        ]
        yield Door(model, urls, url)


def cpu_s() -> float:
    """CPU time of all workers that this process's masters have, in s."""
    found: dict[int, tuple[int, int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if b"gunicorn" in stat.with_name("cmdline").read_bytes():
                fields = stat.read_text().rpartition(")")[2].split()
                used = int(fields[11]) + int(fields[12])
                found[int(stat.parent.name)] = (int(fields[1]), used)
    masters = {pid for pid, (parent, _) in found.items() if parent == os.getpid()}
    return sum(used for parent, used in found.values() if parent in masters) / TICKS


def unchunked(raw: bytes) -> str:
    """The body of an answer that came in HTTP chunks."""
    rest, body = raw.partition(b"\r\n\r\n")[2], b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        body, rest = body + rest[:length], rest[length + 2 :]
        if not length:
            break
    return body.decode()
