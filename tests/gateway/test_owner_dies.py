"""The owner of a stream is killed, or told to stop, in the middle of its answer."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.nodes import DETECT_S, GRACE_S, Pair
from tests.gateway.conftest import SHARED
from tests.gateway.talking import Chat, Talker
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

TEXT = "Grüße, 你好 😀 world. " * 6


@pytest.fixture(scope="module")
def harmed(redis_server: RedisServer, model_server: ModelServerProcess) -> Iterator[Pair]:
    env = {
        **SHARED,
        "FLIGHTSVC_API_TOKENS": "{}",
        "FLIGHTSVC_TAKEOVER_DETECT_MS": f"{DETECT_S * 1000:.0f}",
        "FLIGHTSVC_GATEWAY_HEAD_AFTER_MS": "20000",
    }
    with Pair(redis_server, model_server, env=env) as pair:
        yield pair


@pytest.fixture
def pair(harmed: Pair, model: ModelServerProcess) -> Iterator[Pair]:
    harmed.warm()
    model.reset()
    yield harmed
    harmed.await_complete()


def kill(pair: Pair) -> None:
    os.kill(pair.a.pid, signal.SIGKILL)


def two_runs(model: ModelServerProcess, chat: Chat, second: str, **first: object) -> None:
    """The first call stops after a few chunks, the second says a text of its own."""
    model.script(
        [
            chat.rule(nth=1, chunk_chars=5, gate="never", **first),
            chat.rule(text=second, chunk_chars=7),
        ]
    )


def test_callers_that_have_nothing_yet_follow_the_new_owner_unseen(
    pair: Pair, model: ModelServerProcess
) -> None:
    chat = Chat(TEXT)
    two_runs(model, chat, "another answer")
    Talker(pair.a.service.url, chat)
    model.until(open_calls=1)
    waiting = [Talker(pair.b.service.url, chat, stream=stream) for stream in (True, True, False)]
    pair.await_waiting(pair.b, 3)
    kill(pair)
    for each in waiting:
        assert (each.wait().status, each.text) == (200, "another answer")
    assert all(each.done for each in waiting[:2])
    assert model.stats()["by_rule"][chat.mark] == 2


def test_who_has_a_part_goes_on_if_the_new_answer_begins_with_it(
    pair: Pair, model: ModelServerProcess
) -> None:
    chat = Chat(TEXT)
    two_runs(model, chat, chat.text, gate_after_chunks=3)
    Talker(pair.a.service.url, chat)
    model.until(open_calls=1)
    had = [Talker(pair.b.service.url, chat).await_chunks(4) for _ in range(2)]
    counting = Talker(pair.b.service.url, chat, stream_options={"include_usage": True})
    counting.await_chunks(4)
    kill(pair)
    for each in [*had, counting]:
        each.wait()
        assert (each.text, each.done) == (chat.text, True)
        assert len({chunk["id"] for chunk in each.chunks}) == 1
    assert counting.chunks[-1]["usage"]["total_tokens"] > 0
    assert model.stats()["by_rule"][chat.mark] == 2


def test_who_has_a_part_of_another_answer_is_told(pair: Pair, model: ModelServerProcess) -> None:
    chat = Chat(TEXT)
    two_runs(model, chat, "another answer", gate_after_chunks=3)
    Talker(pair.a.service.url, chat)
    model.until(open_calls=1)
    had = Talker(pair.b.service.url, chat).await_chunks(4)
    plain = Talker(pair.b.service.url, chat, stream=False)
    pair.await_waiting(pair.b, 2)
    killed = time.monotonic()
    kill(pair)
    told = had.wait()
    assert told.text == chat.text[:15]
    assert not told.done
    assert told.error["code"] == "flight_interrupted"
    assert told.error["retryable"] is True
    assert had.ended_at - killed < DETECT_S + 2
    assert plain.wait().text == "another answer"
    assert Talker(pair.b.service.url, chat).wait().text == "another answer"


def test_h13_streams_of_a_worker_that_stops_are_told_before_the_close(
    pair: Pair, model: ModelServerProcess
) -> None:
    chat = Chat(TEXT)
    two_runs(model, chat, chat.text, gate_after_chunks=3)
    near = Talker(pair.a.service.url, chat).await_chunks(4)
    far = Talker(pair.b.service.url, chat).await_chunks(4)
    os.kill(pair.a.pid, signal.SIGTERM)
    told = near.wait(GRACE_S + 5)
    assert told.error["code"] == "draining"
    assert (far.wait().text, far.done) == (chat.text, True)
    wait_until(pair.a.complete, 30)
