"""iFlytek's XingChen: workflows behind ``POST {base}/workflow/v1/chat/completions``.

A workflow has instructions of its own, so it is not sent the prompt's messages but the same by
name (``ModelRequest.parameters``). What a question is about is uploaded first
(``POST {base}/workflow/v1/upload_file``), in the same attempt and out of the same time.
"""

from __future__ import annotations

import copy
import http.client
import json
import re
import time
import uuid
from collections.abc import Mapping
from hashlib import sha256

import urllib3
from urllib3.fields import RequestField
from urllib3.filepost import encode_multipart_formdata

from flightsvc.errors import ProviderError, ProviderRejected, SettingsError
from flightsvc.metrics import Metrics
from flightsvc.providers.base import ModelAnswer, ModelFile, ModelRequest, measured
from flightsvc.providers.transport import (
    Transport,
    at_most,
    checked_base_url,
    read_body,
    read_error_body,
    read_pieces,
)
from flightsvc.providers.xingchen_replies import http_failure, read_reply, read_upload
from flightsvc.settings import Settings

CHAT, UPLOAD = "/workflow/v1/chat/completions", "/workflow/v1/upload_file"
#: The parameters with what the user says, and with the address of the uploaded file.
USER_INPUT, USER_FILE = "AGENT_USER_INPUT", "USER_FILE"

#: Longest ``uid`` that the service takes, in characters.
LONGEST_UID = 40
#: How long the end of a stream is waited for once all is said, in s, so that its connection can
#: serve the next call.
_END_S = 0.1

_HEADER_VALUE = re.compile(r"[!-~]+")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LATE = "The workflow did not answer in time."


class XingChen:
    """The workflows of one app, one for each stage.

    Proxies of the environment and redirects are not used: key and secret go to the configured
    address and nowhere else.

    :raises SettingsError: address, key or secret cannot be used, or no stage has a workflow.
    """

    name = "xingchen"

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._flows = {
            stage: of.flow_id for stage, of in settings.stages.items() if of.flow_id.strip()
        }
        if not self._flows:
            raise SettingsError("No stage has a flow_id; name the workflow to run.")
        #: stands for all workflows together: another workflow is another model
        self.model = f"flows-{_digest(json.dumps(sorted(self._flows.items())))[:12]}"
        self._stream = settings.xingchen_stream
        self._metrics = metrics
        self._transport = Transport(
            checked_base_url(
                "xingchen_base_url", settings.xingchen_base_url, "https://xingchen-api.xf-yun.com"
            ),
            _headers(settings),
            connect_s=settings.xingchen_connect_timeout_ms / 1000,
            connections=sum(stage.concurrency for stage in settings.stages.values()),
        )

    def of_stage(self, stage: str) -> XingChen:
        """The same under the name of one stage's workflow, for its keys, breaker and metrics; it
        shares its connections with this one."""
        flow = self._flows.get(stage)
        if flow is None:
            return self
        bound = copy.copy(self)
        bound.model = flow
        return bound

    def complete(self, request: ModelRequest, timeout_s: float) -> ModelAnswer:
        """Upload the file, if there is one, and run the stage's workflow once; see
        :meth:`flightsvc.providers.base.Provider.complete`.

        :raises ProviderRejected: the stage has no workflow; nothing is sent.
        """
        ends = time.monotonic() + timeout_s
        with measured(self._metrics, self), at_most(timeout_s, _LATE):
            flow = self._flows.get(request.stage)
            if flow is None:
                at = f"stages.{request.stage}.flow_id"
                raise ProviderRejected(f"There is no workflow for this kind of question; set {at}.")
            parameters = dict(request.parameters) or {USER_INPUT: _last_user_text(request)}
            if request.file is not None and request.file.data:
                parameters[USER_FILE] = self._upload(request.file, request, timeout_s)
            return self._run(flow, parameters, request, ends - time.monotonic())

    def close(self) -> None:
        """Close the kept connections."""
        self._transport.close()

    def _upload(self, file: ModelFile, request: ModelRequest, timeout_s: float) -> str:
        """The address under which the workflow finds the file."""
        body, content_type = _form(file)
        headers = {**request.trace_headers, "Content-Type": content_type}
        with self._transport.post(
            UPLOAD, body, timeout_s=timeout_s, first_byte_s=timeout_s, headers=headers
        ) as response:
            _check_status(response)
            return read_upload(read_body(response, request.between_bytes_s), response.status)

    def _run(
        self, flow: str, parameters: Mapping[str, str], request: ModelRequest, left_s: float
    ) -> ModelAnswer:
        body = _request_body(flow, parameters, request.user, stream=self._stream)
        first_byte_s = left_s if request.first_byte_s is None else request.first_byte_s
        with self._transport.post(
            CHAT,
            body,
            timeout_s=left_s,
            first_byte_s=min(first_byte_s, left_s),
            headers={**request.trace_headers, "Content-Type": "application/json"},
        ) as response:
            _check_status(response)
            pieces = read_pieces(response, request.between_bytes_s)
            answer = read_reply(pieces, response.status, flow)
            _read_to_the_end(response)
            return answer


def _check_status(response: urllib3.BaseHTTPResponse) -> None:
    """
    :raises ProviderError: it is not 2xx.
    """
    if not 200 <= response.status < 300:
        raise http_failure(response.status, response.headers, read_error_body(response))


def _read_to_the_end(response: urllib3.BaseHTTPResponse) -> None:
    """Take in what follows the last frame, if it comes soon; all that was asked for is there."""
    try:
        with at_most(_END_S, _LATE):
            read_body(response, _END_S, limit=1_024)
    except (ProviderError, urllib3.exceptions.HTTPError, OSError, http.client.HTTPException):
        pass  # the connection is closed, and not kept


def _last_user_text(request: ModelRequest) -> str:
    return next((each.content for each in reversed(request.messages) if each.role == "user"), "")


def _request_body(flow: str, parameters: Mapping[str, str], user: str, *, stream: bool) -> bytes:
    body = {
        "flow_id": flow,
        "uid": user_id(user),
        "parameters": dict(parameters),
        "stream": stream,
        "ext": {"caller": "workflow"},
        # a conversation of its own: what one question was answered must not reach another
        "chat_id": uuid.uuid4().hex,
        "history": [],
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def user_id(user: str) -> str:
    """What the service is told of a user: a hash, whatever the caller took for a name."""
    return _digest(f"flightsvc.uid\0{user}")[:LONGEST_UID]


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def _form(file: ModelFile) -> tuple[bytes, str]:
    """A form with the file, and its content type."""
    name = file.name if _FILE_NAME.fullmatch(file.name) else "file"
    part = RequestField("file", file.data, filename=name)
    part.make_multipart(content_type=file.mime)
    return encode_multipart_formdata([part])


def _headers(settings: Settings) -> dict[str, str]:
    key = settings.xingchen_api_key.get_secret_value()
    secret = settings.xingchen_api_secret.get_secret_value()
    for name, value in (("xingchen_api_key", key), ("xingchen_api_secret", secret)):
        if not _HEADER_VALUE.fullmatch(value):
            raise SettingsError(f"{name} is empty, or holds what no HTTP header may hold.")
    return {
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {key}:{secret}",
        "User-Agent": "flightsvc",
    }
