"""Chunks into a completion, and a completion into chunks.

Streams and plain answers say the same in two forms. What is not known here goes the same way as
what is; see :mod:`flightsvc.gateway.merging`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from flightsvc.errors import AnswerCut, AnswerInvalid
from flightsvc.gateway.merging import Calls, check_message, frozen, merge

#: What stands in a chunk itself, and is not of the answer.
_CHUNK, _COMPLETION = "chat.completion.chunk", "chat.completion"
#: What a chunk may hold that has no choices and says nothing.
_HEAD = {"id", "object", "created", "model", "system_fingerprint", "service_tier", "type"}


class Assembler:
    """Puts the chunks of one answer together."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._usage: dict[str, Any] | None = None

    def add(self, chunk: dict[str, Any]) -> dict[str, Any] | None:
        """Take one chunk of the model.

        :returns: the chunk as callers get it, without token counts: those come at the end, for
            who wants them. None if nothing else was in it.
        :raises AnswerInvalid: it is no chunk, or says what does not fit to those before.
        """
        usage = chunk.pop("usage", None)
        if isinstance(usage, dict):
            self._usage = usage
        if not chunk.get("error"):
            chunk.pop("error", None)
        choices = chunk.get("choices")
        if choices is None and chunk.keys() <= {*_HEAD, "choices"}:
            return None
        if not isinstance(choices, list):
            raise AnswerInvalid("A chunk of the model's answer has no choices.")
        for name, value in chunk.items():
            if name != "choices" and (name != "id" or not self._head.get("id")):
                self._head[name] = self._head.get(name) if value is None else value
        for choice in choices:
            self._add_choice(choice)
        return None if usage is not None and not choices else chunk

    def usage_chunk(self) -> dict[str, Any] | None:
        """The chunk with the token counts, where the model gave them."""
        if self._usage is None:
            return None
        return {**self._head, "object": _CHUNK, "choices": [], "usage": self._usage}

    def completion(self, wanted: int = 1, *, done: bool = False) -> dict[str, Any]:
        """The whole answer.

        :param wanted: number of choices that were asked for; fewer are whole if the model says so.
        :param done: whether the model said that this is all.
        :raises AnswerCut: it is not whole.
        """
        if not self._choices or (len(self._choices) < wanted and not done):
            raise AnswerCut("The model's stream ended without an answer.")
        if any(not choice.get("finish_reason") for choice in self._choices.values()):
            raise AnswerCut("The model did not say that it finished.")
        choices = [frozen(self._choices[index]) for index in sorted(self._choices)]
        answer = {**self._head, "object": _COMPLETION, "choices": choices}
        return answer if self._usage is None else {**answer, "usage": self._usage}

    def _add_choice(self, choice: object) -> None:
        if not isinstance(choice, dict):
            raise AnswerInvalid("A choice of the model's answer is not an object.")
        index = choice.get("index", 0)
        if type(index) is not int:
            raise AnswerInvalid("A choice of the model's answer has no number.")
        _check_choice(choice)
        found = self._choices.get(index)
        if "message" in choice:  # how some end a stream, or give all of it
            message = choice.pop("message")
            if found is None and message and not choice.get("delta"):
                choice["delta"] = message
        if found is None:
            begun: dict[str, Any] = {"role": "assistant", "content": None}
            found = self._choices[index] = {"index": index, "message": begun}
            found["finish_reason"] = None
        for name, value in choice.items():
            if name == "delta":
                _add_delta(found["message"], value or {})
            elif name == "logprobs":
                merge(found, {name: value})
            elif name != "index":
                found[name] = found.get(name) if value is None else value


def play(completion: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The chunks of a whole answer; put together again they are that answer.

    The last one has the token counts, if the answer has them.
    """
    head = {name: value for name, value in completion.items() if name not in ("choices", "usage")}
    head["object"] = _CHUNK
    for number, choice in enumerate(completion["choices"]):
        for part in _parts(choice):
            plain = {"index": choice.get("index", number), "finish_reason": None}
            yield {**head, "choices": [{**plain, **part}]}
    if completion.get("usage") is not None:
        yield {**head, "choices": [], "usage": completion["usage"]}


def check_whole(completion: Mapping[str, Any]) -> None:
    """Whether an answer that came in one piece is whole; some models give fewer choices than were
    asked for.

    :raises AnswerInvalid: it has no choices, or they have not the form of such.
    :raises AnswerCut: one of them did not finish.
    """
    choices = completion.get("choices")
    if not isinstance(choices, list) or not choices:
        raise AnswerInvalid("The model's answer has no choices.")
    for choice in choices:
        if not isinstance(choice, Mapping) or not isinstance(choice.get("message"), Mapping):
            raise AnswerInvalid("A choice of the model's answer has no message.")
        _check_choice(choice)
        if type(choice.get("index", 0)) is not int:
            raise AnswerInvalid("A choice of the model's answer has no number.")
        if not choice.get("finish_reason"):
            raise AnswerCut("The model did not say that it finished.")


def to_bytes(value: Mapping[str, Any]) -> bytes:
    """JSON in UTF-8; halves of surrogate pairs stay the escapes that they came as.

    :raises ValueError: a number that JSON does not have.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()



def _check_choice(choice: Mapping[str, Any]) -> None:
    """:raises AnswerInvalid: what every reader relies on has another type."""
    for name in ("delta", "message"):
        said = choice.get(name)
        if said is None:
            continue
        if not isinstance(said, Mapping):
            raise AnswerInvalid(f"The {name} of a choice of the model's answer is not an object.")
        check_message(said)
    if not isinstance(choice.get("finish_reason") or "", str):
        raise AnswerInvalid("A choice of the model's answer ends for a reason that is no text.")


def _add_delta(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    calls = delta.get("tool_calls")
    merge(message, {**delta, "tool_calls": None} if calls is not None else delta)
    if calls is not None:
        if message["tool_calls"] is None:
            message["tool_calls"] = Calls()
        message["tool_calls"].add(calls)


def _parts(choice: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The deltas of one choice, its end last."""
    message = dict(choice["message"])
    calls = message.pop("tool_calls") if message.get("tool_calls") is not None else None
    content = message.pop("content", None)
    opening = {"role": message.pop("role", "assistant"), "content": content and ""}
    yield {"delta": opening if content != "" else {**opening, "content": ""}}
    if message:  # reasoning, refusal, whatever else
        yield {"delta": message}
    logprobs = {"logprobs": choice["logprobs"]} if choice.get("logprobs") is not None else {}
    if content or logprobs:
        yield {"delta": {"content": content} if content else {}, **logprobs}
    for index, call in enumerate(calls or ()):
        yield {"delta": {"tool_calls": [{**call, "index": index}]}}
    if calls is not None and not calls:
        yield {"delta": {"tool_calls": []}}
    rest = {name: value for name, value in choice.items() if name not in ("index", "message")}
    yield {"delta": {}, **{name: rest[name] for name in rest if name not in logprobs}}
