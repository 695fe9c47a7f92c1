"""Any model behind an OpenAI-compatible chat endpoint (``POST {base}/chat/completions``).

Asked with a prompt of ours, for a whole answer; ``openai_stream.py`` passes on foreign ones.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from flightsvc.errors import AnswerInvalid, SettingsError
from flightsvc.metrics import Metrics
from flightsvc.providers.answers import check_end, checked_text, first_choice, usage
from flightsvc.providers.base import ModelAnswer, ModelFile, ModelRequest, measured
from flightsvc.providers.chat import ChatEnd, ChatRequest, OnChunk
from flightsvc.providers.failures import body_failure, error_code, parse_json, status_failure
from flightsvc.providers.openai_stream import read_models, stream_chat
from flightsvc.providers.transport import (
    Transport,
    at_most,
    checked_base_url,
    read_body,
    read_error_body,
)
from flightsvc.settings import Settings

PATH = "/chat/completions"

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
            checked_base_url("openai_base_url", settings.openai_base_url, "https://api.example.com/v1"),
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
    choice = first_choice(document)
    failure = body_failure({"error": choice.get("error")})
    if failure is not None:
        raise failure
    text = _whole_text(choice)
    model = document.get("model")
    if not isinstance(model, str) or not 0 < len(model) <= _LONGEST_MODEL_NAME:
        model = asked_model
    return ModelAnswer(text, model, simulated=False, usage=usage(document.get("usage")))


def _whole_text(choice: Mapping[str, Any]) -> str:
    """The text of a choice that ended as it should."""
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else {}
    check_end(choice.get("finish_reason"), refusal=message.get("refusal"))
    return checked_text(message.get("content"))


def _request_body(model: str, request: ModelRequest) -> bytes:
    messages: list[dict[str, Any]] = [
        {"role": each.role, "content": each.content} for each in request.messages
    ]
    if request.file is not None and request.file.mime.startswith("image/"):
        _show(messages, request.file)
    body: dict[str, Any] = {"model": model, "messages": messages}
    # OpenAI refuses this format unless a message says "JSON".
    if request.json_answer and any("json" in each.content.lower() for each in request.messages):
        body["response_format"] = {"type": "json_object"}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _show(messages: list[dict[str, Any]], file: ModelFile) -> None:
    """Put an image behind the newest text of the user; the text of other files is in there."""
    url = f"data:{file.mime};base64,{base64.b64encode(file.data).decode()}"
    image = {"type": "image_url", "image_url": {"url": url}}
    for message in reversed(messages):
        if message["role"] == "user":
            message["content"] = [{"type": "text", "text": message["content"]}, image]
            return
    messages.append({"role": "user", "content": [image]})


def _headers(key: str) -> dict[str, str]:
    if not _HEADER_VALUE.fullmatch(key):
        raise SettingsError("openai_api_key holds characters that no HTTP header may hold.")
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": "flightsvc",
    }
    return {**headers, "Authorization": f"Bearer {key}"} if key else headers
