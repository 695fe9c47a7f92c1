"""What the model server puts on the wire, byte by byte."""

from __future__ import annotations

import gzip
import json
import socket
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import urllib3

from flightsvc.model_server.process import ModelServerProcess
from tests.model_server.reading import events, said, split, unchunked

Raw = Callable[..., bytes]

TEXT = "aé你😀 " * 4


def script(server: ModelServerProcess, **behave: Any) -> None:
    server.script([{"behave": behave}])


def test_a_plain_answer_has_openais_form(server: ModelServerProcess, raw: Raw) -> None:
    script(server, answer="echo")
    head, body = split(raw(TEXT))
    assert head.startswith("HTTP/1.1 200 OK\r\n")
    assert f"Content-Length: {len(body)}" in head
    document = json.loads(body)
    assert document["object"] == "chat.completion"
    assert document["model"] == "m"
    assert document["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": TEXT},
            "finish_reason": "stop",
        }
    ]
    usage = document["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_by_default_the_answer_is_a_judgement(server: ModelServerProcess, raw: Raw) -> None:
    content = json.loads(split(raw(TEXT))[1])["choices"][0]["message"]["content"]
    assert json.loads(content)["feedback"]


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("stream", [False, True])
def test_each_framing_carries_the_same_text(
    server: ModelServerProcess, raw: Raw, framing: str, stream: bool
) -> None:
    script(server, answer="echo", framing=framing)
    head, body = split(raw(TEXT, stream=stream))
    assert ("Content-Length" in head) == (framing == "length")
    assert ("Transfer-Encoding: chunked" in head) == (framing == "chunked")
    content = unchunked(body) if framing == "chunked" else body
    if stream:
        assert said(events(content)[:-1]) == TEXT
    else:
        assert json.loads(content)["choices"][0]["message"]["content"] == TEXT


def test_a_cut_in_the_middle_of_a_chunk(server: ModelServerProcess, raw: Raw) -> None:
    script(server, answer="echo", framing="chunked", cut_after_bytes=10)
    _, body = split(raw())
    size, _, rest = body.partition(b"\r\n")
    assert int(size, 16) > 10 == len(rest)


@pytest.mark.parametrize("after", [0, 5])
def test_a_reset(
    server: ModelServerProcess, open_call: Callable[..., socket.socket], after: int
) -> None:
    script(server, cut_after_bytes=after, cut="reset")
    with open_call() as sock, pytest.raises(ConnectionResetError):
        list(iter(lambda: sock.recv(65_536), b""))


def test_a_cut_before_the_first_byte(server: ModelServerProcess, raw: Raw) -> None:
    script(server, cut_before_answer=True)
    assert raw() == b""


def test_an_inflating_body(server: ModelServerProcess, raw: Raw) -> None:
    script(server, encoding="gzip", pad_bytes=3_000_000)
    head, body = split(raw())
    assert "Content-Encoding: gzip" in head
    assert len(body) < 20_000
    assert len(gzip.decompress(body)) > 3_000_000


def test_a_body_of_ones_own_and_a_false_length(server: ModelServerProcess, raw: Raw) -> None:
    script(server, body={"code": 10013}, declared_length=99, headers={"X-Sid": "s"})
    head, body = split(raw())
    assert "Content-Length: 99" in head
    assert "X-Sid: s" in head
    assert json.loads(body) == {"code": 10013}
    script(server, body="not JSON")
    assert split(raw())[1] == b"not JSON"


def test_pieces_are_sent_apart(server: ModelServerProcess, raw: Raw) -> None:
    script(server, body="abc", write_bytes=1, write_delay_ms=100)
    started = time.monotonic()
    assert split(raw())[1] == b"abc"
    assert time.monotonic() - started >= 0.2


def test_models_and_unknown_pages(server: ModelServerProcess) -> None:
    assert urllib3.request("GET", server.base_url + "/models").json()["data"][0]["id"]
    assert urllib3.request("GET", server.url + "/nowhere").status == 404
    assert urllib3.request("GET", server.base_url + "/chat/completions").status == 405
    assert urllib3.request("POST", server.base_url + "/chat/completions", body=b"{").status == 400
    assert server.stats()["calls"] == 0


def test_a_chunked_request_and_pipelined_requests_are_understood(
    server: ModelServerProcess, open_call: Callable[..., socket.socket]
) -> None:
    script(server, answer="echo", framing="length")
    body = json.dumps({"messages": [{"role": "user", "content": "x"}]}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n%b\r\n"
    chunked = b"%x\r\n%b\r\n5;ext=1\r\n%b\r\n0\r\nTrailer: 1\r\n\r\n" % (
        len(body) - 5,
        body[:-5],
        body[-5:],
    )
    with open_call(keep_alive=True) as sock:
        sock.sendall(head % b"" + chunked + head % b"Connection: close\r\n" + chunked)
        answers = b"".join(iter(lambda: sock.recv(65_536), b""))
    starts = [at for at in range(len(answers)) if answers.startswith(b"HTTP/1.1 200", at)]
    assert len(starts) == 3
    documents = [json.loads(split(answers[a:b])[1]) for a, b in pairwise([*starts, None])]
    contents = [each["choices"][0]["message"]["content"] for each in documents]
    assert contents == ["hello", "x", "x"]
    assert server.stats()["calls"] == 3
