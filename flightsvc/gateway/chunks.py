"""Chunks into a completion, and a completion into chunks.

Streams and plain answers say the same in two forms. What is not known here goes the same way as
what is: texts of a delta are joined, lists grow, objects are merged, of anything else the last
word counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from flightsvc.errors import AnswerCut, AnswerInvalid

#: Said once; models that say them again in each chunk do not mean more of them.
_ONCE = {"id", "type", "role", "index", "name"}
#: What stands in a chunk itself, and is not of the answer.
_CHUNK, _COMPLETION = "chat.completion.chunk", "chat.completion"


class _Text(list[str]):
    """A text that still grows, in pieces."""


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
        :raises AnswerInvalid: it is no chunk.
        """
        usage = chunk.pop("usage", None)
        if isinstance(usage, dict):
            self._usage = usage
        choices = chunk.get("choices")
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

    def completion(self, wanted: int = 1) -> dict[str, Any]:
        """The whole answer.

        :param wanted: least number of choices.
        :raises AnswerCut: it is not whole.
        """
        if not self._choices or len(self._choices) < wanted:
            raise AnswerCut("The model's stream ended without an answer.")
        if any(not choice.get("finish_reason") for choice in self._choices.values()):
            raise AnswerCut("The model did not say that it finished.")
        choices = [_frozen(self._choices[index]) for index in sorted(self._choices)]
        answer = {**self._head, "object": _COMPLETION, "choices": choices}
        return answer if self._usage is None else {**answer, "usage": self._usage}

    def _add_choice(self, choice: object) -> None:
        if not isinstance(choice, dict):
            raise AnswerInvalid("A choice of the model's answer is not an object.")
        index = choice.get("index", 0)
        if type(index) is not int:
            raise AnswerInvalid("A choice of the model's answer has no number.")
        found = self._choices.get(index)
        if found is None:
            message: dict[str, Any] = {"role": "assistant", "content": None}
            found = self._choices[index] = {"index": index, "message": message}
            found["finish_reason"] = None
        for name, value in choice.items():
            if name == "delta" and isinstance(value, dict):
                _merge(found["message"], value)
            elif name == "logprobs" and isinstance(value, dict):
                _merge(found, {name: value})
            elif name not in ("delta", "index"):
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
    """Whether an answer that came in one piece is whole.

    :raises AnswerInvalid: it has no choices.
    :raises AnswerCut: one of them did not finish.
    """
    choices = completion.get("choices")
    if not isinstance(choices, list) or not choices:
        raise AnswerInvalid("The model's answer has no choices.")
    for choice in choices:
        if not isinstance(choice, Mapping) or not isinstance(choice.get("message"), Mapping):
            raise AnswerInvalid("A choice of the model's answer has no message.")
        if not choice.get("finish_reason"):
            raise AnswerCut("The model did not say that it finished.")


def to_bytes(value: Mapping[str, Any]) -> bytes:
    """JSON in UTF-8; halves of surrogate pairs stay the escapes that they came as."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def _parts(choice: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The deltas of one choice, its end last."""
    message = dict(choice["message"])
    calls = message.pop("tool_calls", None)
    content = message.pop("content", None)
    opening = {"role": message.pop("role", "assistant"), "content": content and ""}
    yield {"delta": opening if content != "" else {**opening, "content": ""}}
    if message:  # reasoning, refusal, whatever else
        yield {"delta": message}
    logprobs = {"logprobs": choice["logprobs"]} if choice.get("logprobs") is not None else {}
    if content or logprobs:
        yield {"delta": {"content": content} if content else {}, **logprobs}
    for index, call in enumerate(calls or ()):
        yield {"delta": {"tool_calls": [{"index": index, **call}]}}
    if calls is not None and not calls:
        yield {"delta": {"tool_calls": []}}
    rest = {name: value for name, value in choice.items() if name not in ("index", "message")}
    yield {"delta": {}, **{name: rest[name] for name in rest if name not in logprobs}}


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        held = into.get(name)
        if value is None:
            into.setdefault(name, None)
        elif isinstance(value, str) and name in _ONCE:
            into[name] = held or value
        elif isinstance(value, str):
            if not isinstance(held, _Text):
                held = into[name] = _Text()
            held.append(value)
        elif isinstance(value, Mapping):
            if not isinstance(held, dict):
                held = into[name] = {}
            _merge(held, value)
        elif isinstance(value, list):
            if not isinstance(held, list) or isinstance(held, _Text):
                held = into[name] = []
            _merge_list(held, value, called=name == "tool_calls")
        else:
            into[name] = value


def _merge_list(into: list[Any], more: list[Any], *, called: bool) -> None:
    """Objects with an ``index`` (all tool calls are such) are merged, others are put behind."""
    for item in more:
        if not isinstance(item, Mapping) or not (called or type(item.get("index")) is int):
            into.append(item)
            continue
        held = _held(into, item)
        if held is None:
            held = {"index": item.get("index", len(into))}
            into.append(held)
        _merge(held, item)


def _held(held: list[Any], item: Mapping[str, Any]) -> dict[str, Any] | None:
    """What of a list an item belongs to; where models leave the index out, the id says it, and
    an item without any belongs to the last one."""
    objects = [each for each in held if isinstance(each, dict)]
    for name in ("index", "id"):
        if item.get(name) is not None:
            return next((each for each in objects if each.get(name) == item[name]), None)
    return objects[-1] if objects else None


def _frozen(value: Any, name: str = "") -> Any:
    """The value with its texts whole."""
    if isinstance(value, _Text):
        return _whole_text("".join(value))
    if isinstance(value, dict):
        return {key: _frozen(each, key) for key, each in value.items()}
    if isinstance(value, str):
        return _whole_text(value)
    if isinstance(value, list):
        items = [_frozen(each) for each in value]
        if name == "tool_calls":
            items.sort(key=lambda each: each.get("index", 0))
            items = [{key: each[key] for key in each if key != "index"} for each in items]
        return items
    return value


def _whole_text(text: str) -> str:
    """Halves of a character that came in two chunks, as one; a half that is alone as U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
