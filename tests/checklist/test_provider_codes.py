"""Statuses and codes of providers: each becomes the expected code, kept apart by provider."""

from __future__ import annotations

import pytest

from flightsvc.errors import ProviderError, ProviderRejected, ProviderUnavailable
from flightsvc.providers.failures import body_failure, status_failure
from tests.checklist.lists import merged

SHIPPED = merged()


def openai_status(status: int) -> str:
    named = {
        401: "PROVIDER_AUTH_FAILED",
        402: "PROVIDER_QUOTA_EXHAUSTED",
        403: "PROVIDER_AUTH_FAILED",
        407: "PROVIDER_AUTH_FAILED",
        408: "AI_INFRA_TIMEOUT",
        413: "AI_MODEL_OOM",
        429: "PROVIDER_RATE_LIMITED",
        504: "AI_INFRA_TIMEOUT",
        524: "AI_INFRA_TIMEOUT",
    }
    if status in named:
        return named[status]
    if status >= 500:
        return "PROVIDER_UNAVAILABLE"
    return "PROVIDER_REJECTED" if status >= 300 else "PROVIDER_UNREACHABLE"


def test_http_statuses_of_an_openai_compatible_service() -> None:
    for status in (*range(100, 200), *range(300, 600)):
        error = status_failure(status, {}, None)
        assert SHIPPED.classify(error, "openai").name == openai_status(status), status


OPENAI_CODES = {
    ("content_filter", 400): "AI_INPUT_SENSITIVE",
    ("content_policy_violation", 400): "AI_INPUT_SENSITIVE",
    ("data_inspection_failed", 400): "AI_INPUT_SENSITIVE",
    ("context_length_exceeded", 400): "AI_MODEL_OOM",
    ("string_above_max_length", 400): "AI_MODEL_OOM",
    ("insufficient_quota", 429): "PROVIDER_QUOTA_EXHAUSTED",
    ("billing_hard_limit_reached", 400): "PROVIDER_QUOTA_EXHAUSTED",
    ("invalid_api_key", 401): "PROVIDER_AUTH_FAILED",
    ("permission_denied", 403): "PROVIDER_AUTH_FAILED",
    ("rate_limit_exceeded", 429): "PROVIDER_RATE_LIMITED",
    ("rate_limit_exceeded", 200): "PROVIDER_RATE_LIMITED",
    ("get_channel_failed", 503): "AI_INFRA_UNAVAILABLE",
    ("maintenance", 503): "AI_INFRA_MAINTENANCE",
    ("model_not_found", 404): "PROVIDER_REJECTED",
    ("invalid_request_error", 400): "PROVIDER_REJECTED",
    ("server_error", 500): "PROVIDER_UNAVAILABLE",
}


@pytest.mark.parametrize(("given_code", "status"), OPENAI_CODES)
def test_codes_of_an_openai_compatible_service(given_code: str, status: int) -> None:
    if status == 200:  # the failure stands in the body of an answer (H24)
        error = body_failure({"error": {"code": given_code, "type": given_code}})
        assert error is not None
    else:
        error = status_failure(status, {}, given_code)
    assert SHIPPED.classify(error, "openai").name == OPENAI_CODES[given_code, status]


#: XingChen's numbers by what they ask for
XINGCHEN = {
    "PROVIDER_UNAVAILABLE": (20303, 20358, 20359, 20360, 20361, 20362, 20369, 20371),
    "PROVIDER_RATE_LIMITED": (20356, 20357, 20375, 20376, 20902, 20903),
    "AI_INFRA_TIMEOUT": (20804,),
    "PROVIDER_REJECTED": (460, 20201, 20202, 20204),
    "AI_INPUT_SENSITIVE": (20363, 20368, 21102),
    "AI_CONTENT_FILTERED": (20364, 21103),
    "AI_MODEL_OOM": (20372,),
    "AI_INPUT_MALFORMED": (23601, 23602, 23603),
    "PROVIDER_QUOTA_EXHAUSTED": (20366, 20373, 20374, 20901),
    "PROVIDER_AUTH_FAILED": (20365, 20900),
}


@pytest.mark.parametrize(
    ("number", "expected"), [(number, code) for code in XINGCHEN for number in XINGCHEN[code]]
)
def test_numbers_of_xingchen(number: int, expected: str) -> None:
    """They come with HTTP 200 as well as with an error's status, whatever class that makes."""
    in_body = body_failure({"code": number, "message": "…"})
    assert in_body is not None
    for error in (
        in_body,
        status_failure(400, {}, str(number)),
        status_failure(500, {}, str(number)),
    ):
        assert SHIPPED.classify(error, "xingchen").name == expected


def test_what_xingchen_s_numbers_allow() -> None:
    """Quick retries for what passes; none for refusals, and none for quota and access."""
    retried = {20303, *range(20356, 20363), 20369, 20371, 20375, 20376, 20804, 20902, 20903}
    for code, numbers in XINGCHEN.items():
        for number in numbers:
            assert (SHIPPED.code(code).retry is not None) == (number in retried), number


def test_providers_are_kept_apart() -> None:
    error: ProviderError = ProviderUnavailable(upstream_status=200, upstream_code="20363")
    assert SHIPPED.classify(error, "xingchen").name == "AI_INPUT_SENSITIVE"
    for provider in ("openai", "simulated", ""):
        assert SHIPPED.classify(error, provider).name == "PROVIDER_UNAVAILABLE"
    error = ProviderRejected(upstream_status=413)
    assert SHIPPED.classify(error, "openai").name == "AI_MODEL_OOM"
    assert SHIPPED.classify(error, "xingchen").name == "PROVIDER_REJECTED"
