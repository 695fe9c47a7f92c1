"""XingChen's wire format: replies and frames of workflows, and uploaded files."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from email.parser import BytesParser
from email.policy import HTTP
from pathlib import PurePath
from typing import Any

from flightsvc.model_server.http import Request
from flightsvc.model_server.rules import Behave
from flightsvc.model_server.script import Call

#: Longest ``uid`` and ``chat_id``, in characters.
MAX_UID, MAX_CHAT_ID = 40, 32


def fault(document: dict[str, Any]) -> str:
    """What a request for a workflow lacks; empty if nothing."""
    if not isinstance(document.get("flow_id"), str) or not document["flow_id"]:
        return "a flow_id"
    if not isinstance(document.get("parameters"), dict):
        return "an object of parameters"
    if not isinstance(document.get("stream"), bool):
        return "true or false for stream"
    for name, most in (("uid", MAX_UID), ("chat_id", MAX_CHAT_ID)):
        given = document.get(name, "")
        if not isinstance(given, str) or len(given) > most:
            return f"a {name} of at most {most} characters"
    return ""


def reply(call: Call, text: str, behave: Behave, usage: dict[str, int]) -> dict[str, Any]:
    """The whole answer of a workflow that does not stream."""
    return {**_frame(call, text, behave.finish_reason), "usage": usage, **_event_data(behave)}


def frames(
    call: Call, texts: Sequence[str], behave: Behave, usage: dict[str, int]
) -> Iterator[dict[str, Any]]:
    """The frames of a stream: an empty one, one a text, and the end."""
    if behave.code is not None:
        yield failure(call, behave.code)
        return
    for number, text in enumerate(["", *texts]):
        step = {"seq": number, "progress": round(number / (len(texts) + 1), 2)}
        yield {**_frame(call, text, None), "workflow_step": step}
    if behave.finish_reason is not None:
        step = {"seq": len(texts) + 1, "progress": 1}
        end = {**_frame(call, "", behave.finish_reason), "workflow_step": step, "usage": usage}
        yield {**end, **_event_data(behave)}


def failure(call: Call, code: int) -> dict[str, Any]:
    """The body that says that a call failed, also with HTTP 200."""
    return {"code": code, "message": f"scripted code {code}", "id": f"spf{call.key[:20]}"}


def uploaded(call: Call) -> dict[str, Any]:
    """Where an uploaded file is found: its address names its content."""
    suffix = PurePath(str(call.document.get("name", ""))).suffix
    url = f"https://files.example/{hashlib.sha256(call.body).hexdigest()}{suffix}"
    return {"code": 0, "message": "Success", "sid": f"spf{call.key[:20]}", "data": {"url": url}}


def file_of(request: Request) -> tuple[str, bytes | None]:
    """Name and content of the part ``file`` of a form; no content if there is none."""
    kind = request.headers.get("content-type", "")
    head = f"Content-Type: {kind}\r\n\r\n".encode("latin-1")
    form = BytesParser(policy=HTTP).parsebytes(head + request.body)
    for part in form.iter_parts() if form.is_multipart() else ():
        if part.get_param("name", header="content-disposition") == "file":
            content = part.get_payload(decode=True)
            return part.get_filename() or "", content if isinstance(content, bytes) else None
    return "", None


def _frame(call: Call, text: str, reason: str | None) -> dict[str, Any]:
    delta = {"role": "assistant", "content": text, "reasoning_content": ""}
    return {
        "code": 0,
        "message": "Success",
        "id": f"spf{call.key[:20]}",
        "created": int(time.time()),
        "choices": [{"delta": delta, "index": 0, "finish_reason": reason}],
    }


def _event_data(behave: Behave) -> dict[str, Any]:
    return {} if behave.event_data is None else {"event_data": behave.event_data}
