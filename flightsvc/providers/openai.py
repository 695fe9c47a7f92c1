"""Any model behind an OpenAI-compatible chat endpoint (``POST {base}/chat/completions``).

Asked with a prompt of ours, for a whole answer; ``openai_stream.py`` passes on foreign ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import urllib3

from flightsvc.errors import AnswerCut, AnswerInvalid, SettingsError
from flightsvc.metrics import Metrics
from flightsvc.providers.base import ModelAnswer, ModelRequest, measured
from flightsvc.providers.chat import ChatEnd, ChatRequest, OnChunk
from flightsvc.providers.failures import body_failure, error_code, parse_json, status_failure
from flightsvc.providers.openai_stream import read_models, stream_chat
from flightsvc.providers.transport import Transport, at_most, read_body, read_error_body
from flightsvc.settings import Settings

PATH = "/chat/completions"

#: What models say when an answer is whole; every other reason means that it is not.
WHOLE = {"stop", "eos", "eos_token", "end_turn", "stop_sequence"}
TRUNCATED = {"length", "max_tokens", "model_length"}
FILTERED = {"content_filter", "sensitive", "safety"}

_HEADER_VALUE = re.compile(r"[!-~]*")
_LONGEST_MODEL_NAME = 200


class OpenAIProvider:
    """One model of one OpenAI-compatible service.

    Proxies of the environment and redirects are not used: the key goes to the configured
    address and nowhere else.

    :raises SettingsError: base URL, key or model cannot be used.
    """

    name = "openai"
    simulated = False

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        if not settings.openai_model.strip():
            raise SettingsError("openai_model is empty; name the model to ask.")
        self.model = settings.openai_model
        self._metrics = metrics
        self._transport = Transport(
            _checked_base_url(settings.openai_base_url),
            _headers(settings.openai_api_key.get_secret_value()),
            connect_s=settings.openai_connect_timeout_ms / 1000,
            connections=sum(stage.concurrency for stage in settings.stages.values()),
        )

    def complete(self, request: ModelRequest, timeout_s: float) -> ModelAnswer:
        """Ask once; see :meth:`flightsvc.providers.base.Provider.complete`."""
        body = _request_body(self.model, request)
        first_byte_s = timeout_s if request.first_byte_s is None else request.first_byte_s
        with (
            measured(self._metrics, self),
            at_most(timeout_s, "The model did not answer in time."),
            self._transport.post(
                PATH,
                body,
                timeout_s=timeout_s,
                first_byte_s=first_byte_s,
                headers=request.trace_headers,
            ) as response,
        ):
            if not 200 <= response.status < 300:
                code = error_code(parse_json(read_error_body(response)))
                raise status_failure(response.status, response.headers, code)
            return read_answer(read_body(response, request.between_bytes_s), self.model)

    def chat(self, request: ChatRequest, timeout_s: float, on_chunk: OnChunk) -> ChatEnd:
        """Pass a chat on; see :meth:`flightsvc.providers.chat.ChatProvider.chat`."""
        with measured(self._metrics, self):
            return stream_chat(self._transport, PATH, request, timeout_s, on_chunk)

    def list_models(self, timeout_s: float) -> Sequence[Mapping[str, Any]]:
        """What the service's own ``GET {base}/models`` says."""
        return read_models(self._transport, timeout_s)

    def close(self) -> None:
        """Close the kept connections."""
        self._transport.close()


def read_answer(body: bytes, asked_model: str) -> ModelAnswer:
    """The answer in a 2xx body, if there is a whole one.

    :param asked_model: the model's name where the body does not give one.
    :raises ProviderError: the body says that the call failed.
    :raises AnswerInvalid: the body holds no whole answer; the code says why.
    """
    document = parse_json(body)
    if not isinstance(document, Mapping):
        raise AnswerInvalid("The model's answer is not a JSON object.")
    failure = body_failure(document)
    if failure is not None:
        raise failure
    choice = _first_choice(document)
    failure = body_failure({"error": choice.get("error")})
    if failure is not None:
        raise failure
    text = _whole_text(choice)
    model = document.get("model")
    if not isinstance(model, str) or not 0 < len(model) <= _LONGEST_MODEL_NAME:
        model = asked_model
    return ModelAnswer(text, model, simulated=False, usage=_usage(document.get("usage")))


def _first_choice(document: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise AnswerInvalid("The model's answer has no choices.")
    choice: Mapping[str, Any] = choices[0]
    return choice


def _whole_text(choice: Mapping[str, Any]) -> str:
    """The text of a choice that ended as it should."""
    reason = choice.get("finish_reason")
    reason = reason.lower() if isinstance(reason, str) else ""
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else {}
    if reason in FILTERED or message.get("refusal"):
        raise _final("The model withheld its answer.", "AI_CONTENT_FILTERED")
    if reason in TRUNCATED:
        raise _final("The model's answer was cut at its longest length.", "AI_ANSWER_TRUNCATED")
    if reason not in WHOLE:
        raise AnswerCut("The model did not say that it finished.")
    text = message.get("content")
    if text is None or (isinstance(text, str) and not text.strip()):
        raise AnswerInvalid("The model's answer is empty.", code="AI_ANSWER_EMPTY")
    if not isinstance(text, str) or not _is_unicode(text):
        raise AnswerInvalid("The model's answer is not text.")
    return text


def _final(message: str, code: str) -> AnswerInvalid:
    """An invalid answer that the same question would only get again."""
    error = AnswerInvalid(message, code=code)
    error.retryable = False
    return error


def _is_unicode(text: str) -> bool:
    """Whether the text can be written as UTF-8; JSON can smuggle in half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _usage(given: object) -> dict[str, int] | None:
    """The token counts of an answer, if it has them."""
    if not isinstance(given, Mapping):
        return None
    kinds = ("prompt_tokens", "completion_tokens", "total_tokens")
    return {kind: given[kind] for kind in kinds if type(given.get(kind)) is int} or None


def _request_body(model: str, request: ModelRequest) -> bytes:
    messages = [{"role": each.role, "content": each.content} for each in request.messages]
    body: dict[str, Any] = {"model": model, "messages": messages}
    # OpenAI refuses this format unless a message says "JSON".
    if request.json_answer and any("json" in each.content.lower() for each in request.messages):
        body["response_format"] = {"type": "json_object"}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _checked_base_url(base_url: str) -> str:
    """The base URL without a slash at its end."""
    try:
        url = urllib3.util.parse_url(base_url)
    except urllib3.exceptions.LocationParseError:
        url = urllib3.util.parse_url("")
    if url.scheme not in ("http", "https") or not url.host or url.auth or url.query or url.fragment:
        raise SettingsError(
            "openai_base_url must be http:// or https://, with a host and without user, "
            "query or fragment, such as https://api.example.com/v1."
        )
    return url.url.rstrip("/")


def _headers(key: str) -> dict[str, str]:
    if not _HEADER_VALUE.fullmatch(key):
        raise SettingsError("openai_api_key holds characters that no HTTP header may hold.")
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": "flightsvc",
    }
    return {**headers, "Authorization": f"Bearer {key}"} if key else headers
