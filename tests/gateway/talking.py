"""Clients of the OpenAI door, as plain as they can be: a socket, and what came on it when."""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import gevent

from tests.processes import wait_until

#: the model that is asked for
MODEL = "test-model"
#: no caller here waits longer, in s
PATIENCE_S = 40


class Chat:
    """One question that nobody else asks.

    :param text: what is asked; the model's echo.
    :param fields: of its body.
    """

    def __init__(self, text: str = "", **fields: Any) -> None:
        self.mark = os.urandom(6).hex()
        self.text = f"{text}{self.mark}"
        messages = [{"role": "user", "content": self.text}]
        self.body: dict[str, Any] = {"model": MODEL, "messages": messages, **fields}

    def rule(self, **behave: Any) -> dict[str, Any]:
        """A rule of the model server's script for this question's calls; by default an echo."""
        nth = behave.pop("nth", None)
        match: dict[str, Any] = {"body_contains": self.mark}
        if nth is not None:
            match["nth"] = [nth]
        given = {"answer": "echo", **behave}
        if "text" in given:
            given["answer"] = "text"
        if "body" in given or "events" in given:
            del given["answer"]
        return {"name": self.mark, "match": match, "behave": given}


class Talker:
    """Somebody who asks over HTTP, in a greenlet of its own, and notes what comes when.

    :param url: of a node.
    :param stream: whether chunks are wanted.
    :param headers: beside the usual ones.
    :param fields: of the body, beside the question's.
    """

    def __init__(
        self,
        url: str,
        chat: Chat,
        *,
        stream: bool = True,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        self.status = 0
        self.headers: dict[str, str] = {}
        self.raw = b""
        #: when the request was sent, the head came, the last byte came (monotonic)
        self.began_at = time.monotonic()
        self.head_at = self.ended_at = 0.0
        #: when each read brought something
        self.times: list[float] = []
        self._error: Exception | None = None
        body = json.dumps({**chat.body, "stream": stream, **fields}).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        self._greenlet = gevent.spawn(self._talk, body, sent)

    def _talk(self, body: bytes, headers: dict[str, str]) -> None:
        try:
            self._connection.request("POST", "/v1/chat/completions", body, headers)
            answer = self._connection.getresponse()
            self.head_at = time.monotonic()
            self.headers = {name.lower(): value for name, value in answer.getheaders()}
            self.status = answer.status
            while piece := answer.read1(65_536):
                self.times.append(time.monotonic())
                self.raw += piece
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            self._error = error
        self.ended_at = time.monotonic()

    def leave(self) -> None:
        """Close the connection, whatever was still to come."""
        self._greenlet.kill()
        self._connection.close()

    def wait(self, within_s: float = PATIENCE_S) -> Talker:
        """Until the answer ended; a broken connection is raised."""
        self._greenlet.join(within_s)
        assert self._greenlet.dead, f"no end within {within_s} s"
        self._connection.close()
        if self._error is not None:
            raise self._error
        return self

    @property
    def ended(self) -> bool:
        return self._greenlet.dead

    def json(self) -> Any:
        """The answer of one that wanted no chunks, or an error."""
        return json.loads(self.wait().raw)

    @property
    def data(self) -> list[str]:
        """The data of all events so far."""
        blocks = self.raw.decode("utf-8", "replace").split("\n\n")
        return [block[6:] for block in blocks if block.startswith("data: ")]

    @property
    def chunks(self) -> list[Any]:
        """All chunks so far."""
        found = [json.loads(each) for each in self.data if each != "[DONE]"]
        return [each for each in found if "error" not in each]

    @property
    def error(self) -> Any:
        """The error object of the last event, or of the whole answer."""
        if not self.raw.startswith((b"data:", b":")):
            return json.loads(self.raw)["error"]
        return json.loads(self.data[-1])["error"]

    @property
    def text(self) -> str:
        """What was said so far."""
        if self.raw.startswith(b"{"):
            return str(json.loads(self.raw)["choices"][0]["message"]["content"])
        deltas = (each["choices"][0]["delta"] for each in self.chunks if each["choices"])
        return "".join(delta.get("content") or "" for delta in deltas)

    @property
    def done(self) -> bool:
        """Whether the stream said that it is whole."""
        return self.data[-1:] == ["[DONE]"]

    @property
    def comments(self) -> int:
        return self.raw.count(b": keep-alive\n\n")

    def await_chunks(self, number: int) -> Talker:
        """Until at least so many came."""
        wait_until(lambda: len(self.chunks) >= number or self.ended, PATIENCE_S)
        assert len(self.chunks) >= number, self.raw
        return self
