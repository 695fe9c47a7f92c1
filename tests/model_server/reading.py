"""Reading raw HTTP answers and event streams, the plain way."""

from __future__ import annotations

import json
from typing import Any


def split(answer: bytes) -> tuple[str, bytes]:
    """Head and body of a raw answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.decode(), body


def unchunked(body: bytes) -> bytes:
    """The content of a complete chunked body."""
    content = b""
    while True:
        size, _, body = body.partition(b"\r\n")
        if int(size, 16) == 0:
            assert body == b"\r\n"
            return content
        content += body[: int(size, 16)]
        assert body[int(size, 16) :].startswith(b"\r\n")
        body = body[int(size, 16) + 2 :]


def chunk_sizes(body: bytes) -> list[int]:
    """The sizes of the chunks of a complete chunked body, without the last."""
    sizes: list[int] = []
    while True:
        size, _, body = body.partition(b"\r\n")
        if int(size, 16) == 0:
            return sizes
        sizes.append(int(size, 16))
        body = body[int(size, 16) + 2 :]


def events(content: bytes, end: bytes = b"\n") -> list[Any]:
    """The data of each event: JSON, or a string such as ``[DONE]``."""
    found: list[Any] = []
    for block in content.split(end + end)[:-1]:
        (line,) = [line for line in block.split(end) if not line.startswith(b":")]
        data = line.removeprefix(b"data:").removeprefix(b" ").decode()
        found.append(data if data == "[DONE]" else json.loads(data))
    return found


def said(found: list[Any]) -> str:
    """The text of a stream's events."""
    parts = [each["choices"][0]["delta"].get("content", "") for each in found if "choices" in each]
    return "".join(parts)
