"""How answers end that are none: before the first byte by a status, after it inside the stream."""

from __future__ import annotations

from typing import Any

import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.nodes import Pair
from tests.gateway.conftest import Talk
from tests.gateway.talking import Chat, Talker

TEXT = "Grüße, 你好 😀 world. " * 6


def calls(model: ModelServerProcess, chat: Chat) -> int:
    found: int = model.stats()["by_rule"].get(chat.mark, 0)
    return found


@pytest.mark.parametrize(
    "how",
    [
        {"cut_after_chunks": 3, "cut": "clean"},
        {"cut_after_chunks": 3, "cut": "fin"},
        {"cut_after_chunks": 3, "cut": "reset"},
        {"cut_after_chunks": 3, "cut": "clean", "framing": "close"},
    ],
)
def test_h25_a_cut_stream_is_an_error_and_nothing_is_stored(
    nodes: Pair, model: ModelServerProcess, talk: Talk, how: dict[str, Any]
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(nth=1, chunk_chars=5, **how), chat.rule()])
    cut = talk("a", chat).wait()
    assert (cut.status, len(cut.chunks), cut.done) == (200, 4, False)
    assert cut.error["type"] == "server_error"
    assert cut.error["retryable"] is True
    assert cut.error["code"] in ("ai_answer_incomplete", "provider_unreachable")
    again = talk("b", chat).wait()
    assert (again.text, again.headers["flight-role"]) == (chat.text, "owner")


def test_h25_done_without_a_finish_reason_is_no_answer(
    model: ModelServerProcess, talk: Talk
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(nth=1, chunk_chars=5, finish_reason=None), chat.rule()])
    streamed, plain = talk("a", chat), talk("b", chat, stream=False)
    assert streamed.wait().error["code"] == "ai_answer_incomplete"
    # who waited is told the same; who came a little later has asked again
    assert plain.wait().status == 200 or plain.error["code"] == "ai_answer_incomplete"
    assert talk("b", chat).wait().text == chat.text


def test_h26_a_failure_after_two_chunks_is_told_to_everybody_and_not_tried_again(
    model: ModelServerProcess, talk: Talk
) -> None:
    chat = Chat(TEXT)
    failure = {"error": {"message": "overloaded", "type": "server_error", "code": None}}
    rule = chat.rule(
        chunk_chars=5, gate="go", gate_after_chunks=1, cut_after_chunks=1, cut="clean",
        stream_error=failure,
    )  # fmt: skip
    model.script([rule])
    streams = [talk(node, chat) for node in "aabb"]
    plain = talk("b", chat, stream=False)
    for each in streams:
        each.await_chunks(2)
    model.open_gate("go")
    for each in streams:
        each.wait()
        assert (each.status, len(each.chunks), len(each.data)) == (200, 2, 3)
        assert each.error["code"] == "provider_unavailable"
        assert each.error["flight_id"] == each.headers["flight-id"]
    assert (plain.wait().status, plain.error["code"]) == (503, "provider_unavailable")
    assert calls(model, chat) == 1


@pytest.mark.parametrize("stream", [True, False])
def test_h27_a_refusal_before_the_first_byte_is_a_real_status_for_everybody(
    model: ModelServerProcess, talk: Talk, stream: bool
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(status=429, retry_after=7, gate="go")])
    askers = [talk(node, chat, stream=stream) for node in "aabb"]
    model.until(open_calls=1)
    wait_for_followers(askers)
    model.open_gate("go")
    for each in askers:
        each.wait()
        assert (each.status, each.headers["retry-after"]) == (429, "7")
        assert each.headers["content-type"] == "application/json"
        assert each.error["type"] == "rate_limit_error"
        assert each.error["code"] == "provider_rate_limited"
        assert each.headers["x-should-retry"] == "true"
    assert calls(model, chat) == 1


def wait_for_followers(askers: list[Talker]) -> None:
    """All of them have asked; nothing may have come yet."""
    for each in askers:
        assert not each.ended


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (500, "provider_unavailable", 503),
        (503, "provider_unavailable", 503),
        (401, "provider_auth_failed", 503),
        (403, "provider_auth_failed", 503),
        (402, "provider_quota_exhausted", 503),
    ],
)
def test_what_the_client_cannot_help_is_a_503(
    model: ModelServerProcess, talk: Talk, status: int, code: str, told: int
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(status=status)])
    refused = talk("a", chat).wait()
    assert refused.status == told
    assert refused.error["code"] == code


@pytest.mark.parametrize("stream", [True, False])
def test_what_is_wrong_with_the_request_the_client_hears_in_the_services_words(
    model: ModelServerProcess, talk: Talk, stream: bool
) -> None:
    chat = Chat(TEXT)
    said = {"message": "This model's maximum context length is 8 tokens.",
            "type": "invalid_request_error", "param": "messages",
            "code": "context_length_exceeded"}  # fmt: skip
    model.script([chat.rule(status=400, body={"error": said}, gate="go")])
    askers = [talk(node, chat, stream=stream) for node in "ab"]
    model.until(open_calls=1)
    model.open_gate("go")
    for each in askers:
        each.wait()
        assert each.status == 400
        assert each.headers["x-should-retry"] == "false"
    assert any(said.items() <= each.error.items() for each in askers)
    assert calls(model, chat) == 1


def test_an_error_in_a_200_before_the_first_chunk_is_a_status(
    model: ModelServerProcess, talk: Talk
) -> None:
    chat = Chat(TEXT)
    failure = {"error": {"message": "m", "type": "rate_limit_error", "code": 429}}
    model.script([chat.rule(events=[failure], done=False)])
    assert talk("a", chat).wait().status == 429


def test_an_answer_in_one_piece_serves_both(model: ModelServerProcess, talk: Talk) -> None:
    chat = Chat(TEXT)
    message = {"role": "assistant", "content": "whole"}
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "m",
             "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}  # fmt: skip
    model.script([chat.rule(body=whole, gate="go")])
    streamed, plain = talk("a", chat), talk("b", chat, stream=False)
    model.until(open_calls=1)
    model.open_gate("go")
    assert (streamed.wait().text, streamed.done) == ("whole", True)
    assert plain.json() == whole


def test_who_is_not_known_or_asks_nonsense_hears_it_as_sdks_know_it(
    nodes: Pair, talk: Talk
) -> None:
    unknown = Talker(nodes.a.service.url, Chat()).wait()
    assert (unknown.status, unknown.error["type"]) == (401, "authentication_error")
    assert unknown.headers["www-authenticate"].startswith("Bearer")
    large = talk("a", Chat("x" * 3_000_001)).wait()
    assert (large.status, large.error["code"]) == (413, "payload_too_large")
    odd = talk("a", Chat(), model=7).wait()
    assert (odd.status, odd.error["param"]) == (400, "model")
    half = nodes.a.service.post(
        "/v1/chat/completions",
        {"model": "m", "messages": [{"role": "user", "content": "\ud83d"}]},
        headers={"Authorization": "Bearer token-alice"},
    )
    assert (half.status, half.json()["error"]["code"]) == (400, "json_invalid")
    wrong = nodes.a.service.get("/v1/chat/completions")
    assert (wrong.status, wrong.json()["error"]["code"]) == (405, "method_not_allowed")


def test_a_large_image_fits(model: ModelServerProcess, talk: Talk) -> None:
    chat = Chat("x" * 2_000_000)
    model.script([chat.rule(text="seen")])
    assert talk("a", chat).wait().text == "seen"


def test_the_models_are_listed(nodes: Pair) -> None:
    assert nodes.a.service.get("/v1/models").status == 401
    reply = nodes.b.service.get("/v1/models", headers={"Authorization": "Bearer token-bob"})
    assert reply.json()["object"] == "list"
    assert [each["id"] for each in reply.json()["data"]] == ["test-model"]


def test_h26_chunks_and_failure_at_one_stroke(model: ModelServerProcess, talk: Talk) -> None:
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas = [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}] * 2
    told: list[Any] = [{**head, "choices": [delta]} for delta in deltas]
    failure = {"error": {"message": "m", "type": "server_error", "code": None}}
    for node in "abab":
        chat = Chat()
        model.script([chat.rule(events=[*told, failure], framing="length")])
        talker = talk(node, chat).wait()
        assert (talker.status, talker.text) == (200, "aa")
        assert talker.headers["flight-role"] == "owner"
        assert talker.error["code"] == "provider_unavailable"
