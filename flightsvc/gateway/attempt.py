"""One attempt to have a chat answered: chunks out as they come, the whole answer at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flightsvc.errors import ProviderError
from flightsvc.flight.call import FlightContext
from flightsvc.gateway.chat import STAGE, Chat
from flightsvc.gateway.chunks import Assembler, check_whole, play, to_bytes
from flightsvc.providers import ChatProvider, ChatRequest
from flightsvc.settings import Settings
from flightsvc.tracing import TraceContext

#: Stands before a chunk that only callers get who want token counts.
USAGE = b"u"


class Attempt:
    """Asks the model, once each time that it is called."""

    def __init__(
        self,
        settings: Settings,
        ctx: FlightContext,
        chat: Chat,
        provider: ChatProvider,
        trace: TraceContext,
    ) -> None:
        self._ctx = ctx
        self._chat = chat
        self._provider = provider
        self._trace = trace
        self._between_bytes_s = settings.stage(STAGE).between_bytes_ms / 1000
        self._body = _upstream_body(chat, count_tokens=settings.gateway_count_tokens)
        #: something was handed to the callers: no other attempt may follow
        self.emitted = False
        self._answers: Callable[[], None] = _unheard
        #: the model said when to ask again
        self.told_to_wait = False

    def told_by(self, answers: Callable[[], None]) -> None:
        """What to call when the model begins to answer."""
        self._answers = answers

    def __call__(self, timeout_s: float) -> dict[str, Any]:
        """Ask.

        :param timeout_s: longest time, in seconds.
        :returns: the whole answer, as a completion.
        :raises ProviderError: there is none, or it is not whole.
        """
        assembler = Assembler()

        def on_chunk(chunk: dict[str, Any]) -> None:
            shown = assembler.add(chunk)
            if shown is not None:
                self._emit(to_bytes(shown))

        try:
            end = self._provider.chat(self._request(), timeout_s, on_chunk)
        except ProviderError as error:
            self.told_to_wait = bool(error.retry_after_s)
            raise
        if end.completion is not None:
            return self._in_one_piece(end.completion)
        answer = assembler.completion(self._wanted(), done=end.done)
        usage = assembler.usage_chunk()
        if usage is not None:
            self._emit(USAGE + to_bytes(usage))
        return answer

    def _in_one_piece(self, completion: dict[str, Any]) -> dict[str, Any]:
        """A model that does not stream has answered."""
        check_whole(completion)
        for chunk in play(completion):
            self._emit(tagged(chunk))
        return completion

    def _emit(self, chunk: bytes) -> None:
        if not self.emitted:
            self.emitted = True
            self._answers()
        self._ctx.emit(chunk)

    def _wanted(self) -> int:
        wanted = self._chat.body.get("n")
        return wanted if type(wanted) is int and wanted > 0 else 1

    def _request(self) -> ChatRequest:
        return ChatRequest(
            self._body,
            between_bytes_s=self._between_bytes_s,
            trace_headers=self._trace.child().headers,
            cancelled=self._ctx.cancelled,
        )


def _unheard() -> None:
    """Nobody wants to know."""


def tagged(chunk: dict[str, Any]) -> bytes:
    """A chunk of :func:`play` as it is emitted."""
    data = to_bytes(chunk)
    return USAGE + data if chunk.get("usage") is not None and not chunk["choices"] else data


def _upstream_body(chat: Chat, *, count_tokens: bool) -> dict[str, Any]:
    """What the model's service gets: the client's body, always as a stream."""
    body: dict[str, Any] = {**chat.body, "stream": True}
    options = dict(chat.body.get("stream_options") or {})
    if count_tokens:
        options["include_usage"] = True
    if options:
        body["stream_options"] = options
    else:
        body.pop("stream_options", None)
    return body
