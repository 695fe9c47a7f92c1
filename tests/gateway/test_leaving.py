"""Who leaves is noticed, and when the last one in the cluster has left the model is let go."""

from __future__ import annotations

import os
import signal
import time

import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.nodes import Pair
from tests.gateway.conftest import SHARED, Talk
from tests.gateway.talking import Chat, Talker
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

TEXT = "Grüße, 你好 😀 world. " * 6
#: upstream calls end so long after the last caller, in s, and what measuring costs
GIVEN_UP_S = 3.0


def gone_after(model: ModelServerProcess, began: float) -> float:
    """When the model's call had ended, in s from then."""
    model.until(GIVEN_UP_S + 5, open_calls=0)
    return time.monotonic() - began


@pytest.mark.parametrize("silent", [True, False])
@pytest.mark.parametrize("stream", [True, False])
def test_the_only_caller_leaves(
    model: ModelServerProcess, talk: Talk, silent: bool, stream: bool
) -> None:
    chat = Chat(TEXT)
    slow = {"gate": "never", "gate_after_chunks": 2} if silent else {"chunk_delay_ms": 100}
    model.script([chat.rule(chunk_chars=1, **slow)])
    caller = talk("a", chat, stream=stream)
    model.until(open_calls=1)
    if stream:
        caller.await_chunks(2)
    began = time.monotonic()
    caller.leave()
    assert gone_after(model, began) < GIVEN_UP_S
    assert model.stats()["cancelled"] == 1


def test_a_caller_leaves_before_the_models_first_byte(
    model: ModelServerProcess, talk: Talk
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(never_answer=True)])
    caller = talk("a", chat)
    model.until(open_calls=1)
    began = time.monotonic()
    caller.leave()
    assert gone_after(model, began) < GIVEN_UP_S


def test_the_last_caller_of_all_nodes_counts(
    nodes: Pair, model: ModelServerProcess, talk: Talk
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=1, gate="go", gate_after_chunks=2)])
    near, far = talk("a", chat).await_chunks(2), talk("b", chat).await_chunks(2)
    near.leave()
    time.sleep(GIVEN_UP_S + 1)
    assert model.stats()["open_calls"] == 1  # the owner's worker has no caller, another has
    back = talk("a", chat).await_chunks(2)
    far.leave()
    time.sleep(GIVEN_UP_S)
    assert model.stats()["open_calls"] == 1
    began = time.monotonic()
    back.leave()
    assert gone_after(model, began) < GIVEN_UP_S
    assert model.stats()["cancelled"] == 1


def test_the_last_caller_sits_at_a_follower(model: ModelServerProcess, talk: Talk) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=1, gate="go", gate_after_chunks=2)])
    near, far = talk("a", chat).await_chunks(2), talk("b", chat).await_chunks(2)
    near.leave()
    time.sleep(2)
    began = time.monotonic()
    far.leave()
    assert gone_after(model, began) < GIVEN_UP_S


def test_who_comes_after_the_last_one_left_asks_anew(
    model: ModelServerProcess, talk: Talk
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(nth=1, chunk_chars=1, gate="never", gate_after_chunks=2), chat.rule()])
    talk("a", chat).await_chunks(2).leave()
    model.until(GIVEN_UP_S + 5, open_calls=0)
    after = talk("b", chat).wait()
    assert (after.text, after.headers["flight-role"]) == (chat.text, "owner")


def test_h07_the_first_leaves_and_the_others_get_everything(
    model: ModelServerProcess, talk: Talk
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=1, gate="go", gate_after_chunks=2)])
    first = talk("a", chat).await_chunks(2)
    others = [talk(node, chat).await_chunks(2) for node in "ab"]
    first.leave()
    time.sleep(2)
    model.open_gate("go")
    for each in others:
        assert (each.wait().text, each.done) == (chat.text, True)
    assert model.stats()["by_rule"][chat.mark] == 1


def test_a_killed_followers_interest_ends_with_its_lease(
    redis_server: RedisServer, model: ModelServerProcess
) -> None:
    chat = Chat(TEXT)
    env = {**SHARED, "FLIGHTSVC_API_TOKENS": "{}", "FLIGHTSVC_TAKEOVER_DETECT_MS": "1000"}
    with Pair(redis_server, model, env=env) as pair:
        pair.warm()
        model.script([chat.rule(chunk_chars=1, gate="never", gate_after_chunks=2)])
        near = Talker(pair.a.service.url, chat).await_chunks(2)
        Talker(pair.b.service.url, chat).await_chunks(2)
        near.leave()
        time.sleep(2.5)
        assert model.stats()["open_calls"] == 1
        killed = time.monotonic()
        os.kill(pair.b.pid, signal.SIGKILL)
        lease_s = 1.0
        assert gone_after(model, killed) < lease_s + GIVEN_UP_S
        wait_until(pair.b.complete)
