"""Counting: calls, connections, and clients that leave."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Callable
from typing import Any

import gevent
import pytest

from flightsvc.model_server.process import ModelServerProcess

Raw = Callable[..., bytes]
OpenCall = Callable[..., socket.socket]


def test_calls_are_counted_by_their_bodies(server: ModelServerProcess, raw: Raw) -> None:
    for text in ("a", "b", "a"):
        raw(text)
    stats = server.stats()
    document = {"model": "m", "messages": [{"role": "user", "content": "a"}]}
    key = hashlib.sha256(json.dumps(document).encode()).hexdigest()
    assert stats["calls"] == 3
    assert stats["by_key"][key] == 2
    assert (stats["open_calls"], stats["cancelled"]) == (0, 0)


def test_the_servers_own_pages_are_not_counted(server: ModelServerProcess) -> None:
    server.script([])
    server.stats()
    stats = server.stats()
    assert (stats["calls"], stats["connections"], stats["open_connections"]) == (0, 0, 0)


def test_h33_ten_calls_are_open_at_once(server: ModelServerProcess, raw: Raw) -> None:
    server.script([{"behave": {"gate": "g"}}])
    calls = [gevent.spawn(raw, f"{n}") for n in range(10)]
    stats = server.until(open_calls=10)
    assert (stats["max_open_calls"], stats["open_connections"]) == (10, 10)
    server.open_gate("g")
    gevent.joinall(calls, raise_error=True)
    stats = server.until(open_calls=0, open_connections=0)
    assert (stats["calls"], stats["max_open_calls"], stats["cancelled"]) == (10, 10, 0)


@pytest.mark.parametrize(
    "behave",
    [
        {"never_answer": True},
        {"latency_ms": 60_000},
        {"gate": "never-opened"},
        {"silent_after_bytes": 5},
        {"chunk_delay_ms": 60_000},
        {"write_bytes": 1, "write_delay_ms": 10},
        {"gate": "never-opened", "gate_after_chunks": 2},
    ],
)
def test_a_client_that_leaves_is_noticed_whatever_the_call_waits_for(
    server: ModelServerProcess, open_call: OpenCall, behave: dict[str, Any]
) -> None:
    server.script([{"behave": behave}])
    with open_call(stream=True):
        server.until(open_calls=1)
    stats = server.until(open_calls=0, open_connections=0)
    assert (stats["calls"], stats["cancelled"]) == (1, 1)


def test_a_gate_holds_a_stream_at_its_place(
    server: ModelServerProcess, open_call: OpenCall
) -> None:
    server.script(
        [{"behave": {"answer": "echo", "chunk_chars": 1, "gate": "g", "gate_after_chunks": 2}}]
    )
    with open_call("abcd", stream=True) as sock:
        seen = b""
        while b'"content": "b"' not in seen:
            seen += sock.recv(65_536)
        sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            sock.recv(65_536)
        sock.settimeout(20)
        server.open_gate("g")
        rest = b"".join(iter(lambda: sock.recv(65_536), b""))
    assert b'"content": "c"' in rest
    assert b"[DONE]" in rest


def test_reset_ends_calls_and_connections_and_shuts_gates(
    server: ModelServerProcess, open_call: OpenCall, raw: Raw
) -> None:
    server.script([{"behave": {"gate": "g"}}])
    with open_call() as sock:
        server.until(open_calls=1)
        server.reset()
        assert sock.recv(10) == b""
    server.until(calls=0, open_calls=0, open_connections=0)
    server.open_gate("g")
    server.reset()
    server.script([{"behave": {"gate": "g"}}])
    with open_call() as sock:
        server.until(open_calls=1)
    server.until(open_calls=0)


def test_a_connection_is_kept_until_it_is_told_otherwise(
    server: ModelServerProcess, open_call: OpenCall
) -> None:
    with open_call(keep_alive=True) as sock:
        assert b"200 OK" in sock.recv(65_536)
        assert server.stats()["open_connections"] == 1
    server.until(open_connections=0)
    server.script([{"behave": {"close_after_ms": 0}}])
    with open_call(keep_alive=True) as sock:
        answer = b"".join(iter(lambda: sock.recv(65_536), b""))
    assert b"Connection: close" not in answer
    server.script([{"behave": {"keep_alive": False}}])
    with open_call(keep_alive=True) as sock:
        answer = b"".join(iter(lambda: sock.recv(65_536), b""))
    assert b"Connection: close" in answer


def test_until_says_what_it_saw(server: ModelServerProcess) -> None:
    with pytest.raises(TimeoutError, match="'calls': 0"):
        server.until(0.05, calls=1)
