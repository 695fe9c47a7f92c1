"""What iFlytek's workflows reply: one object or frames, each with a ``code`` of its own.

A reply with HTTP 200 may be a failure: only ``code`` 0 is none. What was said stands in
``choices[0].delta.content``, also where nothing is streamed. The numbers are those of the
workflow API's error table; what they mean for a caller is the checklist's word, what stands here
is who is at fault: of a refusal the breaker must not make a fault of the service.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flightsvc.errors import (
    AnswerCut,
    AnswerInvalid,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderTimeout,
    ProviderUnavailable,
)
from flightsvc.providers.answers import check_end, checked_text, first_choice, usage
from flightsvc.providers.base import ModelAnswer
from flightsvc.providers.failures import error_code, parse_json, retry_after_s, status_failure
from flightsvc.providers.sse import SseEvent, SseParser

#: Too many at once, or in a second; it passes.
RATE_LIMITED = frozenset({20356, 20357, 20375, 20376, 20902, 20903})
#: The workflow said nothing for too long.
SILENT = frozenset({20804})
#: The service is at fault; it may pass.
UNAVAILABLE = frozenset({20303, *range(20358, 20363), 20369, 20371})
#: The same again is refused again: a wrong request or flow, sensitive or too much text, a bad file.
REFUSED = frozenset(
    {460, 20201, 20202, 20204, 20363, 20364, 20368, 20372, 21102, 21103, 23601, 23602, 23603}
)
#: What was bought is used up, or never was.
NOT_ALLOWED = frozenset({20365, 20366, 20373, 20374, 20900, 20901})

_KINDS: tuple[tuple[frozenset[int], type[ProviderError], str], ...] = (
    (RATE_LIMITED, ProviderRateLimited, "XingChen refuses more calls for now"),
    (SILENT, ProviderTimeout, "The workflow was silent for too long"),
    (UNAVAILABLE, ProviderUnavailable, "XingChen failed"),
    (REFUSED, ProviderRejected, "XingChen refused the request"),
    (NOT_ALLOWED, ProviderRejected, "XingChen does not allow the call; look at the app's quota"),
)
_DONE = b"[DONE]"
#: Longest address of an uploaded file, in characters.
_LONGEST_URL = 4_096


def http_failure(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The error for an HTTP status that is not 2xx; a number in the body says more than it."""
    code = error_code(parse_json(body))
    if code is not None and code.isdecimal():
        failure = _number_failure(int(code), status, retry_after_s(headers.get("Retry-After")))
        if failure is not None:
            return failure
    return status_failure(status, headers, code, "xingchen")


def reply_failure(document: Mapping[str, Any], status: int) -> ProviderError | None:
    """The error that a reply or a frame carries in its ``code``, if it does."""
    code = document.get("code")
    if code in (None, 0, "0"):
        return None
    number = error_code({"code": code})
    known = number is not None and number.isdecimal()
    failure = _number_failure(int(number or 0), status) if known else None
    return failure or ProviderUnavailable(
        f"XingChen answered HTTP {status} with an error in the body.",
        upstream_status=status,
        upstream_code=number,
    )


def _number_failure(
    number: int, status: int, wait_s: float | None = None
) -> ProviderError | None:
    for numbers, kind, message in _KINDS:
        if number in numbers:
            return kind(
                f"{message} ({number}).",
                upstream_status=status,
                upstream_code=str(number),
                retry_after_s=wait_s,
            )
    return None


def read_reply(pieces: Iterable[bytes], status: int, flow: str) -> ModelAnswer:
    """The answer in a 2xx reply, in whichever form it comes; what follows its end is not read.

    :param flow: name of the workflow, for the answer.
    :raises ProviderError: a code says that the call failed.
    :raises AnswerInvalid: there is no whole answer; the code says why.
    """
    source = iter(pieces)
    head = b""
    for piece in source:
        head += piece
        if head.strip():
            break
    if head.lstrip().startswith(b"{"):
        reply = parse_json(head + b"".join(source))
        frames: Iterator[Mapping[str, Any]] = iter([_object(reply)])
    else:
        frames = _frames(head, source)
    return _answer(frames, status, flow)


def _answer(frames: Iterator[Mapping[str, Any]], status: int, flow: str) -> ModelAnswer:
    """The texts of the frames up to the one that says that it is the last."""
    texts: list[str] = []
    for frame in frames:
        failure = reply_failure(frame, status)
        if failure is not None:
            raise failure
        choice = first_choice(frame)
        delta = choice.get("delta")
        said = delta.get("content") if isinstance(delta, Mapping) else None
        if said is not None:
            if not isinstance(said, str):
                raise AnswerInvalid("The workflow's answer is not text.")
            texts.append(said)
        reason = choice.get("finish_reason")
        if reason == "interrupt":
            raise _asks_back(status)
        if reason is not None:
            check_end(reason)
            text = checked_text("".join(texts))
            return ModelAnswer(text, flow, simulated=False, usage=usage(frame.get("usage")))
    raise AnswerCut("The workflow did not say that it finished.")


def _asks_back(status: int) -> ProviderRejected:
    """A workflow that waits for a person; its question (``event_data``) may quote the prompt."""
    return ProviderRejected(
        "The workflow stopped to ask back, and nobody is there to answer; publish one without "
        "question nodes.",
        upstream_status=status,
        upstream_code="interrupt",
    )


def _frames(head: bytes, source: Iterator[bytes]) -> Iterator[Mapping[str, Any]]:
    parser = SseParser()
    for event in _events(parser, head, source):
        if event.data.strip() == _DONE:
            return
        yield _object(parse_json(event.data))


def _events(parser: SseParser, head: bytes, source: Iterator[bytes]) -> Iterator[SseEvent]:
    yield from parser.feed(head)
    for piece in source:
        yield from parser.feed(piece)
    yield from parser.end()


def _object(document: object) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise AnswerInvalid("The workflow's reply is not a JSON object.")
    return document


def read_upload(body: bytes, status: int) -> str:
    """The address of an uploaded file, from a 2xx reply.

    :raises ProviderError: its code says that the upload failed.
    :raises AnswerInvalid: it holds no address.
    """
    document = _object(parse_json(body))
    failure = reply_failure(document, status)
    if failure is not None:
        raise failure
    data = document.get("data")
    url = data.get("url") if isinstance(data, Mapping) else None
    if not isinstance(url, str) or not 0 < len(url) <= _LONGEST_URL or not url.isprintable():
        raise AnswerInvalid("XingChen took the file and gave no address for it.")
    return url
