"""A model server process, and the bytes it sends."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from flightsvc.model_server.process import ModelServerProcess

Raw = Callable[..., bytes]


@pytest.fixture(scope="session")
def server_process() -> Iterator[ModelServerProcess]:
    with ModelServerProcess() as server:
        yield server


@pytest.fixture
def server(server_process: ModelServerProcess) -> ModelServerProcess:
    server_process.reset()
    return server_process


def post_head(length: int, *, keep_alive: bool) -> bytes:
    """The head of a request for a completion."""
    wish = "keep-alive" if keep_alive else "close"
    return (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: {wish}\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def connect(server: ModelServerProcess) -> socket.socket:
    """A plain connection to the server."""
    return socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), timeout=20)


@pytest.fixture
def open_call(server: ModelServerProcess) -> Callable[..., socket.socket]:
    """Sends a call and returns its socket; the answer is still to be read."""

    def send(text: str = "hello", keep_alive: bool = False, **fields: Any) -> socket.socket:
        document = {"model": "m", "messages": [{"role": "user", "content": text}], **fields}
        body = json.dumps(document).encode()
        sock = connect(server)
        sock.sendall(post_head(len(body), keep_alive=keep_alive) + body)
        return sock

    return send


@pytest.fixture
def raw(open_call: Callable[..., socket.socket]) -> Raw:
    """Sends a call and returns every byte of the answer, till the connection ends."""

    def ask(text: str = "hello", **fields: Any) -> bytes:
        with open_call(text, **fields) as sock:
            return b"".join(iter(lambda: sock.recv(65_536), b""))

    return ask
