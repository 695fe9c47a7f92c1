"""Answers of models that do not keep to the form: the same for everybody, whole or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.gateway.conftest import Talk
from tests.gateway.talking import Chat

TEXT = "odd "


def event(delta: Any, reason: str | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": reason, **more}
    return json.dumps({"id": "c", "created": 1, "model": "m", "choices": [choice]})


@pytest.mark.parametrize(
    "odd",
    [
        event({"content": "b"}, logprobs=float("nan")),
        event(5),
        event({"tool_calls": {"a": 1}}),
        event({"content": True}),
    ],
)
def test_h25_a_malformed_chunk_is_the_same_failure_for_everybody(
    model: ModelServerProcess, talk: Talk, odd: str
) -> None:
    chat = Chat(TEXT)
    model.script([chat.rule(events=[event({"content": "a"}), odd, event({}, "stop")], gate="go")])
    stream, plain = talk("a", chat), talk("b", chat, stream=False)
    model.until(open_calls=1)
    model.open_gate("go")
    assert [each["choices"][0]["delta"] for each in stream.wait().chunks] == [{"content": "a"}]
    assert stream.error["code"] == "ai_model_output_malformed"
    assert (plain.wait().status, plain.error["code"]) == (503, "ai_model_output_malformed")
    assert b"NaN" not in stream.raw


def test_h28_text_and_parts_empty_events_and_pings_are_the_same_for_everybody(
    model: ModelServerProcess, talk: Talk
) -> None:
    chat = Chat(TEXT)
    part = {"type": "text", "text": "MID"}
    events = ["", event({"content": "a"}), "", '{"error": null}', "{}", event({"content": [part]}),
              '{"usage": {"total_tokens": 9}}', event({"content": "b"}, "stop")]  # fmt: skip
    model.script([chat.rule(events=events)])
    live = talk("a", chat).wait()
    whole = talk("b", chat, stream=False).json()
    again = talk("b", chat).wait()
    parts = [{"type": "text", "text": "a"}, part, {"type": "text", "text": "b"}]
    assert (live.done, len(live.chunks)) == (True, 3)
    assert (whole["choices"][0]["message"]["content"], whole["usage"]) == (
        parts,
        {"total_tokens": 9},
    )
    deltas = [each["choices"][0]["delta"] for each in again.chunks]
    assert [delta.get("content") for delta in deltas] == ["", parts, None]


def test_a_model_that_does_not_know_n_gives_what_it_has(
    model: ModelServerProcess, talk: Talk
) -> None:
    chat = Chat(TEXT, n=2)
    model.script([chat.rule(events=[event({"content": "a"}, "stop")])])
    live = talk("a", chat).wait()
    assert (live.done, live.text) == (True, "a")
