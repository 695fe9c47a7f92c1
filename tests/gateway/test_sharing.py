"""Equal chats are one call, live for everybody, on every node: who shares, and who does not."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.nodes import Pair
from tests.gateway.conftest import BOB, Talk
from tests.gateway.talking import Chat, Talker

TEXT = "Grüße, 你好 😀 world. " * 6


def calls(model: ModelServerProcess, chat: Chat) -> int:
    """How often the model was asked a question."""
    found: int = model.stats()["by_rule"].get(chat.mark, 0)
    return found


def test_callers_of_both_nodes_share_one_call_live(model: ModelServerProcess, talk: Talk) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=5, gate="go", gate_after_chunks=4)])
    talkers = [talk(node, chat, stream=stream) for node in "ab" for stream in (True, True, False)]
    streams, plain = [each for i, each in enumerate(talkers) if i % 3 < 2], talkers[2::3]
    for each in streams:
        each.await_chunks(5)
        assert each.text == chat.text[:20]
    assert not any(each.head_at for each in plain)
    model.open_gate("go")
    for each in [*streams, *plain]:
        each.wait()
        assert (each.status, each.text) == (200, chat.text)
        assert each.headers["flight-id"] == talkers[0].headers["flight-id"]
    assert all(each.done for each in streams)
    assert calls(model, chat) == 1
    said: list[Any] = [*(each.chunks[0] for each in streams), *(each.json() for each in plain)]
    assert len({each["id"] for each in said}) == 1
    roles = sorted(each.headers["flight-role"] for each in talkers)
    assert roles == ["follower"] * 5 + ["owner"]


def test_a_late_joiner_gets_all_from_the_start_then_live(
    model: ModelServerProcess, talk: Talk
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=5, gate="go", gate_after_chunks=7)])
    talk("a", chat).await_chunks(8)
    late = [talk(node, chat).await_chunks(8) for node in "ab"]
    assert {each.text for each in late} == {chat.text[:35]}
    model.open_gate("go")
    assert {each.wait().text for each in late} == {chat.text}
    assert calls(model, chat) == 1


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("again", [True, False])
def test_the_answer_replays_in_either_form(
    model: ModelServerProcess, talk: Talk, first: bool, again: bool
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=5)])
    one = talk("a", chat, stream=first).wait()
    other = talk("b", chat, stream=again).wait()
    assert one.text == other.text == chat.text
    assert other.headers["flight-role"] == "replay"
    assert other.headers["flight-fence"] == one.headers["flight-fence"]
    assert calls(model, chat) == 1


def test_h21_tenants_share_nothing(model: ModelServerProcess, talk: Talk) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(gate="go")])
    forms = [talk("a", chat, stream=stream, headers=who) for stream in (True, False)
             for who in ({}, BOB)]  # fmt: skip
    model.until(open_calls=2)
    model.open_gate("go")
    assert {each.wait().text for each in forms} == {chat.text}
    for node in "ab":
        talk(node, chat, stream=False, headers=BOB).wait()
    assert calls(model, chat) == 2
    assert len({each.headers["flight-id"] for each in forms}) == 2


def test_h23_who_bypasses_shares_nothing_in_either_direction(
    model: ModelServerProcess, talk: Talk
) -> None:
    chat, alone = Chat(TEXT), {"Flight-Mode": "bypass"}
    model.script([chat.rule(gate="go")])
    running = [talk("a", chat, headers=alone), talk("a", chat), talk("a", chat, headers=alone)]
    model.until(open_calls=3)
    model.open_gate("go")
    assert {each.wait().text for each in running} == {chat.text}
    assert talk("a", chat, headers=alone).wait().headers["flight-role"] == "owner"
    assert talk("b", chat).wait().headers["flight-role"] == "replay"
    assert calls(model, chat) == 4


def test_who_refuses_replays_joins_what_is_in_the_air(
    model: ModelServerProcess, talk: Talk
) -> None:
    chat, fresh = Chat(TEXT), {"Flight-Replay": "none"}
    model.script([chat.rule(chunk_chars=5, gate="go", gate_after_chunks=3)])
    first = talk("a", chat).await_chunks(4)
    joined = [talk(node, chat, headers=fresh).await_chunks(4) for node in "ab"]
    model.open_gate("go")
    assert {each.wait().headers["flight-role"] for each in joined} == {"follower"}
    assert first.wait().text == chat.text
    assert calls(model, chat) == 1
    assert talk("b", chat, headers=fresh).wait().headers["flight-role"] == "owner"
    assert calls(model, chat) == 2


def test_a_name_of_the_callers_own(model: ModelServerProcess, talk: Talk) -> None:
    chat, other = Chat(TEXT), Chat(TEXT)
    named = {"Flight-Key": f"order-{chat.mark}"}
    model.script([chat.rule(gate="go"), other.rule()])
    first = talk("a", chat, headers=named, stream=False)
    model.until(open_calls=1)
    for node in "ab":
        refused = talk(node, other, headers=named).wait()
        assert (refused.status, refused.error["code"]) == (422, "key_conflict")
        assert refused.headers["x-should-retry"] == "false"
    model.open_gate("go")
    first.wait()
    assert talk("b", chat, headers=named, user="u").wait().headers["flight-role"] == "replay"
    assert talk("b", other, headers=named).wait().status == 422
    assert talk("b", other, headers={**named, **BOB}).wait().text == other.text
    assert calls(model, chat) == 1


def usage(talker: Talker) -> list[Any]:
    return [each.get("usage", "none") for each in talker.chunks]


def test_token_counts_are_for_who_asks(model: ModelServerProcess, talk: Talk) -> None:
    chat = Chat(TEXT)
    counts = {"stream_options": {"include_usage": True}}
    model.script([chat.rule(chunk_chars=5, gate="go", gate_after_chunks=2)])
    without, counted = talk("a", chat), talk("a", chat, **counts)
    far, plain = talk("b", chat, **counts), talk("b", chat, stream=False)
    counted.await_chunks(3)
    model.open_gate("go")
    later = talk("b", chat, **counts)
    assert set(usage(without.wait())) == {"none"}
    for each in (counted.wait(), far.wait(), later.wait()):
        *before, last = usage(each)
        assert set(map(str, before)) == {"None"}
        assert last["total_tokens"] > 0
        assert last == plain.json()["usage"]
        assert each.chunks[-1]["choices"] == []
        assert each.done
    assert calls(model, chat) == 1


def test_a_retry_after_a_timeout_of_the_clients_own_attaches(
    model: ModelServerProcess, talk: Talk
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=5, gate="go", gate_after_chunks=3)])
    stays = talk("b", chat, stream=False)
    impatient = talk("a", chat).await_chunks(4)
    impatient.leave()
    again = talk("a", chat).await_chunks(4)
    model.open_gate("go")
    assert again.wait().text == stays.wait().text == chat.text
    assert calls(model, chat) == 1


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Flight-Mode", "yes"),
        ("Flight-Replay", "1"),
        ("Flight-Key", "a b"),
        ("Flight-Key", "   "),
        ("Flight-Key", "x" * 257),
    ],
)
def test_a_header_that_says_something_else_is_refused(
    talk: Talk, header: str, value: str
) -> None:
    refused = talk("a", Chat(), headers={header: value}).wait()
    assert (refused.status, refused.error["type"]) == (400, "invalid_request_error")
    assert header in refused.error["message"]


def test_everything_stored_has_an_end(nodes: Pair, model: ModelServerProcess, talk: Talk) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(chunk_chars=3, chunk_delay_ms=5)])
    running = [talk(node, chat) for node in "aab"]
    for each in running:
        each.await_chunks(3)
    assert nodes.without_ttl() == []
    gevent.joinall([gevent.spawn(each.wait) for each in running], raise_error=True)
    assert nodes.without_ttl() == []
