"""The bodies of answers, errors and stream events; OpenAI's wire format."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator
from typing import Any

from flightsvc.model_server import workflow
from flightsvc.model_server.rules import Behave
from flightsvc.model_server.script import Call
from flightsvc.model_server.stages import stage_of
from flightsvc.providers.simulated import SKETCHES, seed

MODELS = ("test-model",)

_LINE_ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
_PAD = b" " * (1024 * 1024)


def answer_text(call: Call, behave: Behave) -> str:
    """What the model says to a call."""
    if behave.answer == "text":
        return behave.text or ""
    if behave.answer == "echo":
        return call.last_user_text
    stage = stage_of(call) if behave.answer == "stage" else behave.answer
    return SKETCHES[stage](call.messages, seed(call.messages))


def plain_body(call: Call, behave: Behave) -> Iterator[bytes]:
    """The body of an answer that is no stream, in pieces of at most about a MiB."""
    whole = _compressed if behave.encoding == "gzip" else iter
    return whole(_padded(_plain_json(call, behave), behave.pad_bytes))


def models_body() -> bytes:
    """The body of ``GET /v1/models``."""
    models = [{"id": name, "object": "model", "owned_by": "flightsvc"} for name in MODELS]
    return json.dumps({"object": "list", "data": models}).encode()


def error_body(status: int, message: str) -> dict[str, Any]:
    """An error of OpenAI's form."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    kind = "rate_limit_error" if status == 429 else kind
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def deltas(call: Call, behave: Behave) -> list[str]:
    """The text of an answer in the pieces in which it is streamed."""
    text, size = answer_text(call, behave), behave.chunk_chars
    return [text[at : at + size] for at in range(0, len(text), size)]


def delta_event(call: Call, behave: Behave, delta: dict[str, Any], reason: str | None) -> bytes:
    """The event for one piece of a streamed answer."""
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return event({**_head(call, "chat.completion.chunk"), "choices": [choice]}, behave)


def workflow_frames(call: Call, behave: Behave) -> Iterator[bytes]:
    """The events of a workflow's stream: the first empty (number 0), one a delta, the end."""
    texts = deltas(call, behave)
    for number, frame in enumerate(workflow.frames(call, texts, behave, _usage(call, behave))):
        error = behave.stream_error if behave.cut_after_chunks is None else None
        if number > len(texts) and error is not None:
            yield event(error, behave)
            return
        yield event(frame, behave)
    if behave.workflow_done:
        yield event("[DONE]", behave)


def usage_event(call: Call, behave: Behave) -> bytes:
    """The event with the token counts, for a client that asked for it."""
    body = {**_head(call, "chat.completion.chunk"), "choices": [], "usage": _usage(call, behave)}
    return event(body, behave)


def event(data: dict[str, Any] | str, behave: Behave) -> bytes:
    """One server-sent event, in the dialect that the script wants."""
    end = _LINE_ENDS[behave.line_end]
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=behave.ascii)
    lines = [": keep-alive"] * behave.comments
    lines.append(f"data:{' ' if behave.data_space else ''}{text}")
    return (end.join(lines) + end + end).encode("utf-8", "surrogatepass")


def _plain_json(call: Call, behave: Behave) -> bytes:
    if isinstance(behave.body, str):
        return behave.body.encode("utf-8", "surrogatepass")
    document: Any = behave.body
    if document is None and behave.code is not None:
        document = workflow.failure(call, behave.code)
    elif document is None and behave.status >= 300:
        reason = f"scripted HTTP {behave.status}"
        is_chat = call.kind == "chat"
        document = error_body(behave.status, reason) if is_chat else {"message": reason}
    elif document is None and call.kind == "upload":
        document = workflow.uploaded(call)
    elif document is None and call.kind == "workflow":
        document = workflow.reply(call, answer_text(call, behave), behave, _usage(call, behave))
    if document is None:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": answer_text(call, behave)},
            "finish_reason": behave.finish_reason,
        }
        head = _head(call, "chat.completion")
        document = {**head, "choices": [choice], "usage": _usage(call, behave)}
    return json.dumps(document, ensure_ascii=behave.ascii).encode("utf-8", "surrogatepass")


def _padded(data: bytes, pad_bytes: int) -> Iterator[bytes]:
    yield data
    for done in range(0, pad_bytes, len(_PAD)):
        yield _PAD[: pad_bytes - done]


def _compressed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


def _head(call: Call, kind: str) -> dict[str, Any]:
    identity = f"chatcmpl-{call.key[:24]}"
    return {"id": identity, "object": kind, "created": int(time.time()), "model": call.model}


def _usage(call: Call, behave: Behave) -> dict[str, int]:
    """Token counts by the rule of thumb: four bytes a token."""
    asked = sum(len(each.content.encode("utf-8", "replace")) for each in call.messages) // 4
    said = len(answer_text(call, behave).encode("utf-8", "replace")) // 4
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
