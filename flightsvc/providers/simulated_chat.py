"""The simulated model's side of a foreign client's chat."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from flightsvc.providers.base import Message
from flightsvc.providers.sketches import plain_sketch

#: Characters in one chunk.
PIECE = 8
#: As many choices as OpenAI gives.
MOST_CHOICES = 128


def chat_chunks(body: Mapping[str, Any], model: str) -> Iterator[dict[str, Any]]:
    """The chunks of a made-up answer; the same text for the same messages.

    :param body: the request.
    :param model: answers where the request names no model.
    """
    messages = tuple(_messages(body))
    seed = int.from_bytes(sha256(json.dumps(body.get("messages")).encode()).digest()[:8], "big")
    text = plain_sketch(messages, seed)
    head = {
        "id": f"chatcmpl-simulated-{seed:016x}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": str(body.get("model") or model),
    }

    def chunk(
        delta: dict[str, Any], reason: str | None = None, index: int = 0
    ) -> dict[str, Any]:
        return {**head, "choices": [{"index": index, "delta": delta, "finish_reason": reason}]}

    wanted = body.get("n")
    choices = min(wanted, MOST_CHOICES) if type(wanted) is int and wanted > 0 else 1
    for index in range(choices):
        yield chunk({"role": "assistant", "content": ""}, index=index)
        for at in range(0, len(text), PIECE):
            yield chunk({"content": text[at : at + PIECE]}, index=index)
        yield chunk({}, "stop", index)
    asked = sum(len(each.content.encode("utf-8", "replace")) for each in messages) // 4
    said = choices * len(text.encode()) // 4
    usage = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
    yield {**head, "choices": [], "usage": usage}


def _messages(body: Mapping[str, Any]) -> Iterator[Message]:
    """The texts of a chat, as far as they are of use here."""
    given = body.get("messages")
    for each in given if isinstance(given, list) else []:
        if isinstance(each, Mapping):
            yield Message("user" if each.get("role") == "user" else "system", _text(each))


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""
