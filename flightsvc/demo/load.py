"""Asking many at once: a greenlet and a connection for each request.

It uses gevent's own sockets, so the process needs no monkey patching.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gevent
from gevent import socket
from gevent.event import Event

from flightsvc.demo.samples import SESSION, Sample

HOST = "127.0.0.1"
#: longest wait for one answer, in s
PATIENCE_S = 45.0


class _Connection(http.client.HTTPConnection):
    """A connection that lets other greenlets run while it waits."""

    def connect(self) -> None:
        self.sock = socket.create_connection((self.host, self.port), self.timeout)


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP answer; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request and what became of it.

    :param request_id: no two requests of the demo have the same.
    :param sample: what was asked.
    :param reply: None if there was no answer; then ``error`` says why.
    :param latency_s: from the first byte sent to the last byte received, in seconds.
    """

    request_id: str
    sample: Sample
    reply: Reply | None
    error: str
    latency_s: float

    @property
    def role(self) -> str:
        """How the answer came about, or ``error``."""
        if self.reply is None or self.reply.status != 200:
            return "error"
        return self.reply.headers.get("flight-role", "error")


def get(port: int, path: str, headers: Mapping[str, str]) -> Reply:
    """One GET.

    :raises OSError: no connection, or it broke.
    :raises http.client.HTTPException: what came is not HTTP.
    """
    connection = _Connection(HOST, port, timeout=5)
    try:
        connection.request("GET", path, headers=dict(headers))
        return _reply(connection)
    finally:
        connection.close()


def ask_at_once(port: int, samples: Sequence[Sample], round_name: str) -> list[Asked]:
    """Have all samples evaluated at the same time; returns when all are answered.

    Every connection is open before the first request goes out.

    :raises OSError: a connection could not be opened; then nothing was asked.
    """
    connections = [_Connection(HOST, port, timeout=PATIENCE_S) for _ in samples]
    go = Event()
    try:
        for connection in connections:
            connection.connect()
        asking = [
            gevent.spawn(_ask, connection, sample, f"{round_name}-{number}", go)
            for number, (connection, sample) in enumerate(zip(connections, samples, strict=True), 1)
        ]
        go.set()
        return [greenlet.get() for greenlet in gevent.joinall(asking)]
    finally:
        for connection in connections:
            connection.close()


def _ask(connection: _Connection, sample: Sample, request_id: str, go: Event) -> Asked:
    headers = {"Content-Type": "application/json", "X-Request-Id": request_id}
    reply, error = None, ""
    go.wait()
    began = time.perf_counter()
    try:
        connection.request("POST", f"/v1/interviews/{SESSION}/evaluations", sample.body, headers)
        reply = _reply(connection)
    except (OSError, http.client.HTTPException) as problem:
        error = f"{type(problem).__name__}: {problem}"
    return Asked(request_id, sample, reply, error, time.perf_counter() - began)


def _reply(connection: _Connection) -> Reply:
    response = connection.getresponse()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Reply(response.status, headers, response.read())
