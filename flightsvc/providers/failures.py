"""What a model's refusal means: HTTP status, error body and Retry-After → one of our errors.

Models put their reasons in words, and the words may quote the prompt or a part of the key. So
only codes travel on, and only those that look like codes.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from flightsvc.errors import (
    AnswerInvalid,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderUnreachable,
)

#: Longest time that a model may tell us to wait, in seconds: a day.
LONGEST_RETRY_AFTER_S = 86_400.0

#: Deepest nesting of an answer that is passed on; it is stored with a few levels more.
MAX_NESTING = 150

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")
_STATUS = re.compile(r"[45][0-9]{2}")
_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")

#: Words in an error's type or code that say more than "it failed", the first match wins.
_RATE_LIMIT_WORDS = ("rate_limit", "ratelimit", "too_many_requests")
_REJECTED_WORDS = (
    "invalid",
    "authentication",
    "permission",
    "forbidden",
    "unauthorized",
    "not_found",
    "unsupported",
    "context_length",
    "content_filter",
    "content_policy",
    "insufficient_quota",
    "billing",
)

#: HTTP status → what to look at, by provider
_HINTS: Mapping[str, Mapping[int, str]] = {
    "openai": {
        401: "check openai_api_key",
        403: "check openai_api_key and what it may use",
        404: "check openai_base_url and openai_model",
    },
    "xingchen": {
        401: "check xingchen_api_key and xingchen_api_secret",
        403: "check xingchen_api_key and what its app may use",
        404: "check xingchen_base_url",
    },
}


def retry_after_s(value: str | None, now: float | None = None) -> float | None:
    """Seconds to wait, from a Retry-After header (RFC 9110, 10.2.3).

    :param value: delay in seconds or an HTTP date; anything else counts as not given.
    :param now: Unix time, in seconds.
    :returns: at most :data:`LONGEST_RETRY_AFTER_S`; None if it says nothing usable.
    """
    value = (value or "").strip()
    if _SECONDS.fullmatch(value):
        return min(float(value), LONGEST_RETRY_AFTER_S)
    try:
        date = parsedate_to_datetime(value)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        wait = date.timestamp() - (time.time() if now is None else now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(wait, LONGEST_RETRY_AFTER_S) if wait >= 0 else None


def status_failure(
    status: int,
    headers: Mapping[str, str],
    upstream_code: str | None,
    provider: str = "openai",
) -> ProviderError:
    """The error for an HTTP status that is not 2xx.

    :param headers: the answer's headers; names in any case, if the mapping looks them up so.
    :param upstream_code: the code in the answer's body, from :func:`error_code`.
    :param provider: whose settings the message names.
    """
    given: dict[str, Any] = {
        "upstream_status": status,
        "upstream_code": upstream_code,
        "retry_after_s": retry_after_s(headers.get("Retry-After")),
    }
    if status == 429:
        return ProviderRateLimited("The model refuses more calls for now (HTTP 429).", **given)
    if status == 408:
        return ProviderTimeout("The model gave up waiting for the request (HTTP 408).", **given)
    if status >= 500:
        return ProviderUnavailable(f"The model answered HTTP {status}.", **given)
    if status >= 400:
        hints = _HINTS.get(provider, {})
        hint = f"; {hints[status]}" if status in hints else ""
        return ProviderRejected(f"The model refused the request (HTTP {status}){hint}.", **given)
    if status >= 300:
        return ProviderRejected(
            f"The model's address redirects (HTTP {status}), which is not followed; "
            f"set {provider}_base_url to the address that answers itself.",
            **given,
        )
    return ProviderUnreachable(f"The model's address answered HTTP {status}.", **given)


def body_failure(document: Mapping[str, Any], status: int = 200) -> ProviderError | None:
    """The error that a 2xx answer carries in its body, if it does.

    Some services answer 200 and put the failure into ``error`` or a ``code`` other than 0.

    :param document: the answer's JSON object.
    """
    error, code = document.get("error"), document.get("code")
    if not error and code in (None, 0, "0", ""):
        return None
    inner = error if isinstance(error, Mapping) else {}
    passed_on = str(inner.get("code"))
    if _STATUS.fullmatch(passed_on):  # gateways pass on the status of the model behind them
        return status_failure(int(passed_on), {}, error_code(document))
    words = " ".join(str(part).lower() for part in (inner.get("type"), passed_on, code))
    message = f"The model answered HTTP {status} with an error in the body."
    given: dict[str, Any] = {"upstream_status": status, "upstream_code": error_code(document)}
    if any(word in words for word in _RATE_LIMIT_WORDS):
        return ProviderRateLimited(message, **given)
    if any(word in words for word in _REJECTED_WORDS):
        return ProviderRejected(message, **given)
    return ProviderUnavailable(message, **given)


def error_code(document: object) -> str | None:
    """The code inside an error body: ``error.code``, ``error.type`` or ``code``; None if it has
    none that looks like a code."""
    if not isinstance(document, Mapping):
        return None
    error = document.get("error")
    inner = error if isinstance(error, Mapping) else {}
    for value in (inner.get("code"), inner.get("type"), document.get("code")):
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            text = str(value)
            if _CODE.fullmatch(text):
                return text
    return None


def parse_json(data: bytes) -> object:
    """The JSON value in a body; None if it holds none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def parse_strict(data: bytes) -> object:
    """As :func:`parse_json`, of what is passed on as it came.

    :raises AnswerInvalid: a number that JSON does not have, or more nesting than can be stored.
    """
    if data.count(b"{") + data.count(b"[") > MAX_NESTING and _depth(data) > MAX_NESTING:
        raise AnswerInvalid(f"The model's answer is nested deeper than {MAX_NESTING} levels.")
    try:
        return json.loads(data, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        return None


def _depth(data: bytes) -> int:
    """How deep the brackets outside of texts are nested."""
    depth = deepest = 0
    for token in _TOKEN.finditer(data):
        kind = token[0][:1]
        if kind in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif kind in b"]}":
            depth -= 1
    return deepest


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _no_number(_text: str) -> float:
    raise AnswerInvalid("The model's answer is no JSON: it holds a number that JSON does not have.")
