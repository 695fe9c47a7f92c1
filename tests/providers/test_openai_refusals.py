"""What an OpenAI-compatible model's refusals become."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import pytest

from flightsvc.errors import (
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderUnreachable,
)
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.providers import ModelRequest, Provider
from tests.providers.failing import SAID, SECRET, failure

Ask = Callable[..., ModelRequest]


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (301, ProviderRejected, False),
        (307, ProviderRejected, False),
        (400, ProviderRejected, False),
        (401, ProviderRejected, False),
        (404, ProviderRejected, False),
        (408, ProviderTimeout, True),
        (429, ProviderRateLimited, True),
        (500, ProviderUnavailable, True),
        (503, ProviderUnavailable, True),
        (529, ProviderUnavailable, True),
    ],
)
def test_each_status_has_its_error(
    server: ModelServerProcess,
    provider: Provider,
    ask: Ask,
    status: int,
    kind: type[ProviderError],
    retryable: bool,
) -> None:
    body = {"error": {"message": f"{SAID} {SECRET}", "type": "t", "code": "a_code"}}
    server.script([{"behave": {"status": status, "body": body}}])
    error = failure(provider, ask())
    assert type(error) is kind
    assert (error.upstream_status, error.upstream_code) == (status, "a_code")
    assert error.retryable is retryable
    assert server.stats()["calls"] == 1  # neither sent again nor sent on


def test_a_redirect_is_not_followed(
    server: ModelServerProcess, provider: Provider, ask: Ask
) -> None:
    location = {"Location": f"{server.base_url}/chat/completions"}
    server.script([{"match": {"times": 1}, "behave": {"status": 308, "headers": location}}])
    assert "openai_base_url" in str(failure(provider, ask()))
    assert server.stats()["calls"] == 1


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("given", "wait_s"),
    [("7", 7), (0, 0), ("99999999", 86_400), ("-3", None), ("soon", None), (None, None)],
)
def test_h27_retry_after_is_passed_on(
    server: ModelServerProcess,
    provider: Provider,
    ask: Ask,
    status: int,
    given: str | int | None,
    wait_s: float | None,
) -> None:
    server.script([{"behave": {"status": status, "retry_after": given}}])
    assert failure(provider, ask()).retry_after_s == wait_s


def test_retry_after_as_a_date(server: ModelServerProcess, provider: Provider, ask: Ask) -> None:
    date = formatdate(time.time() + 100, usegmt=True)
    server.script([{"behave": {"status": 429, "retry_after": date}}])
    wait_s = failure(provider, ask()).retry_after_s
    assert wait_s is not None
    assert 80 < wait_s <= 100


@pytest.mark.parametrize(
    "behave", [{"silent_after_bytes": 10}, {"cut_after_bytes": 10}, {"pad_bytes": 1_000_000}]
)
def test_a_refusal_is_known_also_if_its_body_fails(
    server: ModelServerProcess, provider: Provider, ask: Ask, behave: dict[str, Any]
) -> None:
    server.script([{"behave": {"status": 429, "retry_after": 7, **behave}}])
    error = failure(provider, ask())
    assert type(error) is ProviderRateLimited
    assert error.retry_after_s == 7


def test_nobody_listens(make: Callable[..., Provider], ask: Ask) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound and not listening: refused
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        error = failure(make(openai_base_url=url), ask())
    assert type(error) is ProviderUnreachable
