"""Between the model's bytes and the caller's: dialects, silence, other people's gzip."""

from __future__ import annotations

import time

import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.nodes import Pair
from tests.gateway.conftest import ALICE, SHARED, Talk
from tests.gateway.talking import Chat, Talker
from tests.support.redis_server import RedisServer
from tests.support.service import Service

TEXT = "aé你😀 " * 9


@pytest.mark.parametrize("write_bytes", [1, 2, 3, 5])
def test_h28_a_character_split_anywhere_is_the_same_for_everybody(
    model: ModelServerProcess, talk: Talk, write_bytes: int
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(write_bytes=write_bytes, chunk_chars=1)])
    for each in [talk(node, chat) for node in "ab"]:
        assert each.wait().text == chat.text


@pytest.mark.parametrize("line_end", ["lf", "crlf", "cr"])
@pytest.mark.parametrize("data_space", [True, False])
def test_h29_every_dialect_becomes_one(
    model: ModelServerProcess, talk: Talk, line_end: str, data_space: bool
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(line_end=line_end, data_space=data_space, comments=2)])
    talker = talk("a", chat).wait()
    assert (talker.text, talker.done, talker.comments) == (chat.text, True, 0)
    assert b"\r" not in talker.raw
    assert talker.raw.count(b"\n\n") == len(talker.data)
    assert not any(line.startswith(b"id:") for line in talker.raw.split(b"\n"))


def test_the_head_says_what_proxies_need_to_know(model: ModelServerProcess, talk: Talk) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule()])
    headers = talk("a", chat).wait().headers
    assert headers["content-type"].startswith("text/event-stream")
    assert headers["x-accel-buffering"] == "no"
    assert headers["cache-control"] == "no-cache, no-transform"
    assert headers["content-encoding"] == "identity"


def test_silence_after_the_first_byte_is_kept_alive_by_comments_of_our_own(
    model: ModelServerProcess, talk: Talk
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=5, gate="go", gate_after_chunks=2, comments=1)])
    near, far = talk("a", chat).await_chunks(3), talk("b", chat).await_chunks(3)
    time.sleep(2.6)
    model.open_gate("go")
    for each in (near, far):
        assert each.wait().text == chat.text
        assert each.comments in (2, 3)  # one a second, as set; none of the model's own
    assert talk("b", chat).wait().comments == 0


def test_a_status_is_waited_for_but_not_for_ever(model: ModelServerProcess, talk: Talk) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(gate="go", status=429, retry_after=7)])
    early = [talk(node, chat) for node in "ab"]
    for each in early:
        while not each.head_at:
            time.sleep(0.02)
        assert each.head_at - each.began_at >= 2.4
        assert each.status == 200
    late = talk("b", chat)
    model.open_gate("go")
    for each in early:
        assert each.wait().chunks == []
        assert each.comments >= 1
        assert each.error["code"] == "provider_rate_limited"
    assert (late.wait().status, late.headers["retry-after"]) == (429, "7")


def test_a_hosts_gzip_holds_nothing_back(
    redis_server: RedisServer, model: ModelServerProcess, nodes: Pair
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=5, gate="go", gate_after_chunks=3)])
    env = {
        **SHARED,
        "FLIGHTSVC_REDIS_URL": redis_server.url,
        "FLIGHTSVC_NAMESPACE": nodes.namespace,
        "FLIGHTSVC_PROVIDER": "openai",
        "FLIGHTSVC_OPENAI_BASE_URL": model.base_url,
        "FLIGHTSVC_OPENAI_MODEL": "test-model",
    }
    with Service(env, workers=1, app="tests.gateway.gzip_host:app") as host:
        zipped = host.get("/long", headers={"Accept-Encoding": "gzip"})
        assert zipped.headers["content-encoding"] == "gzip"
        talker = Talker(host.url, chat, headers={**ALICE, "Accept-Encoding": "gzip"})
        assert talker.await_chunks(4).text == chat.text[:15]
        model.open_gate("go")
        assert talker.wait().text == chat.text
