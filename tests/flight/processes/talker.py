"""A worker in a process of its own whose callers stream one question; it may be killed.

Its chunks are ``<tag>0;``, ``<tag>1;`` and so on. It says ``began`` when a caller has its first
chunk, and at the end, as JSON, what the callers got and what it cost.
"""

from __future__ import annotations

import json
import sys
import time
from hashlib import sha256
from typing import Any

import gevent

from flightsvc.flight import Chunk, End, FlightContext, FlightKey, FlightStream, SingleFlight
from tests.processes import run_python

# the patch comes first, as in every worker
PROGRAM = """
from gevent import monkey; monkey.patch_all()
from tests.flight.processes.talker import main; main()
"""


def main() -> None:
    """``talker(url, namespace, settings as JSON, tag, chunks, gap in s, callers)``."""
    url, namespace, settings, tag, chunks, gap_s, callers = sys.argv[1:]
    flights = SingleFlight.from_url(url, namespace=namespace, **json.loads(settings))

    def call(ctx: FlightContext) -> object:
        for number in range(int(chunks)):
            ctx.emit(f"{tag}{number};".encode())
            gevent.sleep(float(gap_s))
        return {"chunks": int(chunks)}

    def listen() -> str:
        with flights.stream(FlightKey("chat", "a question"), call) as stream:
            return _read(stream)

    began, cpu = time.monotonic(), time.process_time()
    listening = [gevent.spawn(listen) for _ in range(int(callers))]
    gevent.joinall(listening, raise_error=True)
    said = {
        "texts": sorted({str(greenlet.value) for greenlet in listening}),
        "counts": flights.metrics.snapshot(),
        "took_s": time.monotonic() - began,
        "cpu_s": time.process_time() - cpu,
    }
    print(json.dumps(said), flush=True)
    flights.close()


def _read(stream: FlightStream) -> str:
    """The hash of a whole text."""
    text = sha256()
    for number in range(1_000_000):
        news = stream.next()
        if number == 0:
            print("began", flush=True)
        if isinstance(news, Chunk):
            text.update(news.data)
        elif isinstance(news, End):
            break
    return text.hexdigest()


class TalkingChild:
    """One such process, talking."""

    def __init__(
        self,
        url: str,
        namespace: str,
        *,
        tag: str = "c",
        chunks: int = 1_000,
        gap_s: float = 0.02,
        callers: int = 1,
        **settings: object,
    ) -> None:
        words = [tag, str(chunks), str(gap_s), str(callers)]
        self._process = run_python(PROGRAM, url, namespace, json.dumps(settings), *words)

    @property
    def pid(self) -> int:
        return self._process.pid

    def end(self) -> dict[str, Any]:
        """What it says at its end."""
        assert self._process.stdout is not None
        said: dict[str, Any] = json.loads(self._process.stdout.readlines()[-1])
        return said

    def __enter__(self) -> TalkingChild:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "began\n"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
