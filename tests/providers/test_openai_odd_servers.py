"""Servers that hardly speak HTTP: the bytes are written by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
from gevent.server import StreamServer

from flightsvc.errors import AnswerInvalid, ProviderError, ProviderTimeout, ProviderUnreachable
from flightsvc.providers import ChatProvider, ChatRequest, ModelRequest, Provider

Ask = Callable[..., ModelRequest]
Odd = Callable[[list[bytes], float], Provider]


@pytest.fixture
def odd(make: Callable[..., Provider]) -> Iterator[Odd]:
    """Makes a provider whose server sends these pieces, so many seconds apart, and closes."""
    servers: list[StreamServer] = []

    def build(pieces: list[bytes], gap_s: float) -> Provider:
        def serve(sock: Any, _address: object) -> None:
            sock.recv(65_536)
            for piece in pieces:
                sock.sendall(piece)
                gevent.sleep(gap_s)

        servers.append(StreamServer(("127.0.0.1", 0), serve))
        servers[-1].start()
        return make(openai_base_url=f"http://127.0.0.1:{servers[-1].server_port}/v1")

    yield build
    for server in servers:
        server.stop()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16",
        b"HTTP/1.1 200 OK\r\n" + b"X-H: 1\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX-H: " + b"x" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\n",
    ],
)
def test_what_is_not_http_is_unreachable(odd: Odd, ask: Ask, answer: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        odd([answer], 0).complete(ask(), 10)
    assert type(caught.value) is ProviderUnreachable
    assert "hello" not in str(caught.value)
    assert caught.value.__cause__ is None  # it may quote what came


def test_a_cut_head_is_no_answer(odd: Odd, ask: Ask) -> None:
    with pytest.raises(AnswerInvalid):
        odd([b"HTTP/1.1 200 OK\r\n"], 0).complete(ask(), 10)


def test_a_head_that_drips_cannot_stretch_the_call(odd: Odd, ask: Ask) -> None:
    head = [b"HTTP/1.1 200 OK\r\n", *[b"x-pad: 1\r\n"] * 90]
    started = time.monotonic()
    with pytest.raises(ProviderTimeout):
        odd(head, 0.1).complete(ask(), 0.4)
    assert 0.4 <= time.monotonic() - started < 5


def test_pings_and_empty_events_say_nothing(odd: Odd) -> None:
    chunk = b'data: {"choices": []}\n\n'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    pings = b"data:\n\nevent: ping\ndata: {}\n\nevent: ping\ndata: now\n\n"
    provider = odd([head + pings + chunk + pings + b"data: [DONE]\n\n" + pings], 0)
    assert isinstance(provider, ChatProvider)
    chunks: list[Any] = []
    assert provider.chat(ChatRequest({"messages": []}), 10, chunks.append).done
    assert chunks == [{"choices": []}]
