"""Bodies as they come over the wire (H38)."""

from __future__ import annotations

import json
import socket
from typing import Any

import gevent
import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.support.service import Service
from tests.web.running import LIMIT, path, send_raw


def test_h38_a_chunked_body_over_the_limit(
    service: Service, model: ModelServerProcess, session: str
) -> None:
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    sock = send_raw(service, path(session), chunk * 6, head=b"Transfer-Encoding: chunked\r\n")
    gevent.sleep(0)
    sock.sendall(chunk)  # the last byte of the limit and one more; the end never comes

    assert status_line(sock).startswith(b"HTTP/1.1 413 ")
    assert model.stats()["calls"] == 0


def test_h38_a_length_over_the_limit_is_refused_before_the_body_comes(
    service: Service, model: ModelServerProcess, session: str
) -> None:
    sock = send_raw(service, path(session), b"", head=b"Content-Length: 100000000000\r\n")

    assert status_line(sock).startswith(b"HTTP/1.1 413 ")
    assert model.stats()["calls"] == 0


def test_a_chunked_body_within_the_limit_is_read(
    service: Service, model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    body = json.dumps(asked).encode().ljust(LIMIT)
    pieces = [body[at : at + 999] for at in range(0, len(body), 999)]
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)

    sock = send_raw(
        service,
        path(session),
        chunked + b"0\r\n\r\n",
        head=b"Transfer-Encoding: chunked\r\n",
    )

    assert status_line(sock).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("body", [b"zz\r\nabc", b"5\r\nab", b"-1\r\n", b"ffffffffffffffffff\r\nx"])
def test_malformed_chunks_are_the_callers_fault(
    service: Service, model: ModelServerProcess, session: str, body: bytes
) -> None:
    sock = send_raw(service, path(session), body, head=b"Transfer-Encoding: chunked\r\n")
    sock.shutdown(socket.SHUT_WR)

    assert status_line(sock)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 413")
    assert model.stats()["calls"] == 0
    assert "Traceback" not in service.log()


def test_a_body_that_does_not_come_is_not_waited_for(
    service: Service, model: ModelServerProcess, session: str
) -> None:
    sock = send_raw(service, path(session), b"{", head=b"Content-Length: 1000\r\n")

    with sock.makefile("rb") as reader:
        head, _, body = reader.read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    told = json.loads(body)
    assert (told["code"], told["retryable"]) == ("BODY_TOO_SLOW", True)
    assert "did not arrive in time" in told["message"]
    assert model.stats()["calls"] == 0


def test_a_body_that_says_it_is_not_compressed_is_read(
    service: Service, session: str, asked: dict[str, Any]
) -> None:
    body = json.dumps(asked).encode()
    head = b"Content-Encoding: identity\r\nContent-Length: %d\r\n" % len(body)

    assert status_line(send_raw(service, path(session), body, head=head))[:12] == b"HTTP/1.1 200"


def status_line(sock: socket.socket) -> bytes:
    with sock, sock.makefile("rb") as reader:
        return reader.readline()
