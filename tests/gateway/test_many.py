"""Many callers of one stream, and slow ones: nobody is held up, and memory does not grow."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import gevent

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.nodes import Pair
from tests.gateway.conftest import ALICE, SHARED, Talk
from tests.gateway.talking import Chat, Talker
from tests.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service

MB = 1024 * 1024


def resident(pid: int) -> int:
    """Memory of a process, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


def takes_nothing(url: str, chat: Chat) -> socket.socket:
    """A client that asks and does not read."""
    parts = urlsplit(url)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect((parts.hostname, parts.port))
    body = json.dumps({**chat.body, "stream": True}).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        f"Content-Type: application/json\r\nAuthorization: {ALICE['Authorization']}\r\n\r\n"
    )
    sock.sendall(head.encode() + body)
    return sock


def read_all(sock: socket.socket) -> bytes:
    data = b""
    while b"[DONE]" not in data and (piece := sock.recv(65_536)):
        data += piece
    return data


def test_a_slow_caller_holds_nobody_up_and_gets_everything(
    nodes: Pair, model: ModelServerProcess, talk: Talk
) -> None:
    chat, text = Chat(), "x" * 2_900_000
    model.script([chat.rule(text=text, chunk_chars=2_000, gate="go", gate_after_chunks=1)])
    slow = [takes_nothing(nodes.a.service.url, chat), takes_nothing(nodes.b.service.url, chat)]
    quick = [talk(node, chat).await_chunks(2) for node in "ab"]
    model.open_gate("go")
    for each in quick:
        assert each.wait().text == text
        assert each.done
    for sock in slow:
        with sock:
            data = read_all(sock)
        assert data.count(b"data: {") == len(quick[0].chunks)
    assert model.stats()["by_rule"][chat.mark] == 1


def test_memory_is_flat_in_the_number_of_callers(
    nodes: Pair, model: ModelServerProcess, talk: Talk
) -> None:
    pids = [nodes.a.pid, nodes.b.pid]
    grown = []
    for callers in (1, 60):
        chat = Chat("y" * 1_000_000)
        gate = f"go-{callers}"
        model.script([chat.rule(chunk_chars=1_000, gate=gate, gate_after_chunks=900)])
        before = [resident(pid) for pid in pids]
        slow = [takes_nothing(node.service.url, chat) for node in nodes.nodes
                for _ in range(callers)]  # fmt: skip
        talk("a", chat).await_chunks(900)
        talk("b", chat).await_chunks(900)
        for node in nodes.nodes:
            nodes.await_waiting(node, callers + 1)
        grown.append(sum(resident(pid) for pid in pids) - sum(before))
        for sock in slow:
            sock.close()
        model.open_gate(gate)
        model.until(open_calls=0)
        for node in nodes.nodes:
            nodes.await_waiting(node, 0)
    # 118 callers more, each of whom is owed 1 MB
    assert grown[1] - grown[0] < 118 * 0.25 * MB, grown


def test_who_takes_nothing_and_does_not_leave_is_put_out(
    redis_server: RedisServer, model: ModelServerProcess, nodes: Pair
) -> None:
    chat, text = Chat(), "x" * 3_500_000
    model.script([chat.rule(text=text, chunk_chars=2_000)])
    env = {
        **SHARED,
        "FLIGHTSVC_REDIS_URL": redis_server.url,
        "FLIGHTSVC_NAMESPACE": f"{nodes.namespace}-own",
        "FLIGHTSVC_PROVIDER": "openai",
        "FLIGHTSVC_OPENAI_BASE_URL": model.base_url,
        "FLIGHTSVC_OPENAI_MODEL": "test-model",
        "FLIGHTSVC_GATEWAY_SEND_TIMEOUT_MS": "500",
    }
    with Service(env, workers=1) as service:
        with takes_nothing(service.url, chat) as stuck:
            wait_until(lambda: '"chat_completions"' in service.log(), 30)  # its answer is over
            with contextlib.suppress(ConnectionResetError):
                assert b"[DONE]" not in read_all(stuck)
        assert '"level":"error"' not in service.log()
        assert Talker(service.url, chat, headers=ALICE).wait().text == text


def test_two_hundred_followers_get_one_text(
    nodes: Pair, model: ModelServerProcess, talk: Talk
) -> None:
    chat = Chat("Grüße, 你好 😀 world. " * 12)
    model.script([chat.rule(chunk_chars=4, chunk_delay_ms=10, gate="go", gate_after_chunks=5)])
    talkers = [talk(node, chat) for node in "ab" for _ in range(100)]
    wait_until(lambda: all(each.head_at for each in talkers), 40)
    model.open_gate("go")
    gevent.joinall([gevent.spawn(each.wait) for each in talkers], raise_error=True)
    assert {each.text for each in talkers} == {chat.text}
    assert {each.raw.count(b"[DONE]") for each in talkers} == {1}
    assert model.stats()["by_rule"][chat.mark] == 1


def test_health_is_answered_beside_a_large_stream(
    nodes: Pair, model: ModelServerProcess, talk: Talk
) -> None:
    chat, text = Chat(), "z" * 500_000
    model.script([chat.rule(text=text, chunk_chars=100)])
    talkers: list[Talker] = [talk("a", chat) for _ in range(10)]
    slowest = 0.0
    while not all(each.ended for each in talkers):
        began = time.monotonic()
        assert nodes.a.service.get("/healthz").status == 200
        slowest = max(slowest, time.monotonic() - began)
        gevent.sleep(0.05)
    assert {each.wait().text for each in talkers} == {text}
    assert slowest < 3, slowest
