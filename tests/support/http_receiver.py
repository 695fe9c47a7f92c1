"""A real HTTP server in the test's own process that remembers what it was sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from gevent.event import Event
from gevent.pywsgi import WSGIServer


@dataclass(slots=True)
class Received:
    """One request; header names in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Answer:
    """What is answered.

    :param first: waited for before anything is.
    """

    status: str = "200 OK"
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    first: Event | None = None


class HttpReceiver:
    """Listens on a free port of 127.0.0.1.

    :param answer: makes the answer to each request, in order.
    """

    def __init__(self, answer: Callable[[Received], Answer] = lambda _: Answer()) -> None:
        self.answer = answer
        self.received: list[Received] = []
        self._server = WSGIServer(("127.0.0.1", 0), self._serve, log=None, error_log=None)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        assert self._server.server_port is not None
        return self._server.server_port

    def _serve(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        headers = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_") or name in ("CONTENT_TYPE", "CONTENT_LENGTH")
        }
        path = environ["PATH_INFO"] + (f"?{query}" if (query := environ["QUERY_STRING"]) else "")
        received = Received(path, headers, environ["wsgi.input"].read())
        self.received.append(received)
        answer = self.answer(received)
        if answer.first is not None:
            answer.first.wait()
        start(answer.status, list(answer.headers.items()))
        return [answer.body]

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.stop(timeout=0)
