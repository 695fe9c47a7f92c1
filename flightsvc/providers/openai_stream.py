"""A foreign client's chat, passed on to an OpenAI-compatible service and streamed back."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import urllib3
from gevent import GreenletExit
from gevent.event import Event
from urllib3.exceptions import HTTPError

from flightsvc.errors import AnswerCut, AnswerInvalid, ProviderError, ProviderRejected
from flightsvc.providers.chat import ChatEnd, ChatRequest, OnChunk
from flightsvc.providers.failures import (
    body_failure,
    error_code,
    parse_json,
    parse_strict,
    status_failure,
)
from flightsvc.providers.sse import SseEvent, SseParser
from flightsvc.providers.transport import (
    Transport,
    at_most,
    read_body,
    read_error_body,
    read_pieces,
)

DONE = b"[DONE]"
#: Names of events that say only that the model is alive.
PINGS = {b"ping", b"heartbeat", b"keepalive", b"keep-alive"}
#: Longest text of a refusal that is passed on, in characters.
LONGEST_WORDS = 4_000


def stream_chat(
    transport: Transport, path: str, request: ChatRequest, timeout_s: float, on_chunk: OnChunk
) -> ChatEnd:
    """Send one chat; see :meth:`flightsvc.providers.chat.ChatProvider.chat`."""
    body = json.dumps(request.body, ensure_ascii=False, separators=(",", ":"))
    first_byte_s = timeout_s if request.first_byte_s is None else request.first_byte_s
    with (
        at_most(timeout_s, "The model did not answer in time."),
        _ended_by(request.cancelled) as watch,
        transport.post(
            path,
            body.encode(),
            timeout_s=timeout_s,
            first_byte_s=first_byte_s,
            headers={"Accept": "text/event-stream", **request.trace_headers},
        ) as response,
    ):
        watch(response)
        if not 200 <= response.status < 300:
            raise _refusal(response, transport)
        if "json" in response.headers.get("Content-Type", "").lower():  # it does not stream
            return ChatEnd(_whole(read_body(response, request.between_bytes_s)))
        return ChatEnd(done=_pass_on(response, request.between_bytes_s, on_chunk))


def read_models(transport: Transport, timeout_s: float) -> Sequence[Mapping[str, Any]]:
    """The models that the service lists.

    :raises ProviderError: it does not say.
    """
    with (
        at_most(timeout_s, "The model's service did not list its models in time."),
        transport.post(
            "/models", None, timeout_s=timeout_s, first_byte_s=timeout_s, method="GET"
        ) as response,
    ):
        if not 200 <= response.status < 300:
            raise _refusal(response, transport)
        document = parse_json(read_body(response, timeout_s))
    listed = document.get("data") if isinstance(document, Mapping) else None
    if not isinstance(listed, list):
        raise AnswerInvalid("The model's service did not list its models.")
    objects = [each for each in listed if isinstance(each, Mapping)]
    return [each for each in objects if isinstance(each.get("id"), str)]


def _pass_on(
    response: urllib3.BaseHTTPResponse, between_bytes_s: float, on_chunk: OnChunk
) -> bool:
    """Hand on all chunks; whether the stream was ended by ``[DONE]``."""
    parser = SseParser()
    for piece in read_pieces(response, between_bytes_s):
        for event in parser.feed(piece):
            if event.data == DONE:
                _read_to_the_end(response)
                return True
            if event.name not in PINGS:
                on_chunk(_chunk(event))
    for event in parser.end():
        if event.data == DONE:
            return True
        if event.name not in PINGS:
            on_chunk(_chunk(event))
    return False


def _read_to_the_end(response: urllib3.BaseHTTPResponse) -> None:
    """What follows `[DONE]` is the end of the framing: with it read, the connection is kept. It
    has come already, as a rule; nobody waits for it."""
    with suppress(ProviderError, HTTPError, OSError, http.client.HTTPException):
        for _ in read_pieces(response, 0.01, 64 * 1024):
            pass


def _chunk(event: SseEvent) -> dict[str, Any]:
    """The chunk in an event.

    :raises ProviderError: it is an error, or nothing that fits.
    """
    document = parse_strict(event.data)
    if not isinstance(document, dict):
        raise AnswerCut("An event of the model's stream is not a JSON object.")
    if event.name == b"error" and not document.get("error"):
        document = {"error": document}
    failure = body_failure(document)
    if failure is not None:
        raise failure
    return document


def _whole(body: bytes) -> dict[str, Any]:
    document = parse_strict(body)
    if not isinstance(document, dict):
        raise AnswerInvalid("The model's answer is not a JSON object.")
    failure = body_failure(document)
    if failure is not None:
        raise failure
    return document


def _refusal(response: urllib3.BaseHTTPResponse, transport: Transport) -> ProviderError:
    """The failure that a status is; what the service says of the request goes with it."""
    document = parse_json(read_error_body(response))
    failure = status_failure(response.status, response.headers, error_code(document))
    error = document.get("error") if isinstance(document, dict) else None
    if isinstance(failure, ProviderRejected) and isinstance(error, dict):
        failure.upstream_error = _told(error, transport)
    return failure


def _told(error: Mapping[str, Any], transport: Transport) -> dict[str, object]:
    """What of a service's error object a client may be told: what OpenAI's has, in bounds, and
    without our key."""
    told: dict[str, object] = {}
    for name in ("message", "type", "param", "code"):
        value = error.get(name)
        if isinstance(value, str):
            told[name] = transport.without_key(value)[:LONGEST_WORDS]
        elif type(value) is int:
            told[name] = str(value)
    return told


class _Watch:
    """Ends the reading of a response from another greenlet."""

    def __init__(self) -> None:
        self._response: urllib3.BaseHTTPResponse | None = None

    def __call__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def end(self, _event: Event) -> None:
        """A reader that waits sees the end of the body, and wakes."""
        if self._response is not None:
            with suppress(OSError, ValueError, AttributeError):  # it has ended by itself
                self._response.shutdown()


@contextmanager
def _ended_by(cancelled: Event | None) -> Iterator[_Watch]:
    """:raises gevent.GreenletExit: the call inside was cancelled, however it ended."""
    watch = _Watch()
    if cancelled is None:
        yield watch
        return
    cancelled.rawlink(watch.end)
    try:
        yield watch
    except ProviderError:
        if cancelled.is_set():
            raise GreenletExit from None
        raise
    finally:
        cancelled.unlink(watch.end)
    if cancelled.is_set():
        raise GreenletExit
