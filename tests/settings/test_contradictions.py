"""Settings that cannot work are refused, with the settings named and the fix."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from flightsvc.errors import SettingsError
from flightsvc.settings import Settings

SECRET = "s3cr3t"
FLOW = {"evaluation": {"flow_id": 7265177322515169282}}
OPENAI = {"provider": "openai", "openai_base_url": "http://h/v1", "openai_model": "m"}

#: values, and what the message must name
REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "late heartbeat is death": (
        {"takeover_detect_ms": 3_999},
        ["takeover_detect_ms (3999)", "heartbeat_ms (2000)", "at least 4000", "at most 1999"],
    ),
    "waiters keep healthz away": (
        {"max_waiters": 1_000},
        ["max_waiters (1000)", "worker_connections (1000)", "at least 1001"],
    ),
    "budget below the timeout": (
        {"stages": {"chat": {"budget_ms": 60_000}}},
        ["stages.chat.budget_ms (60000)", "stages.chat.timeout_ms (120000)", "to 120000"],
    ),
    "no time for the retries": (
        {"stages": {"default": {"timeout_ms": 29_601}}},
        ["stages.default.timeout_ms", "stages.default.retry_delays_ms", "to 30001", "[]"],
    ),
    "callers leave too early": (
        {"stages": {"evaluation": {"wait_ms": 35_999}}},
        ["stages.evaluation.wait_ms (35999)", "takeover_detect_ms (6000)", "at least 36000"],
    ),
    "a worker remembers longer than Redis": (
        {"stages": {"evaluation": {"l1_ttl_s": 6, "result_ttl_s": 5.5}}},
        ["stages.evaluation.l1_ttl_s (6)", "stages.evaluation.result_ttl_s (5.5)"],
    ),
    "a tenant's token that is an operator's": (
        {"api_tokens": {SECRET: "acme"}, "operator_tokens": {SECRET: "ada", "other": "bert"}},
        ["A token stands both in api_tokens and in operator_tokens", "of their own"],
    ),
    "unknown stage": (
        {"stages": {"evalution": {}}},
        ["'evalution'", "did you mean evaluation?", "custom_stages"],
    ),
    "openai without a url": (
        {"provider": "openai", "openai_model": "m"},
        ["provider is openai", "openai_base_url is empty", "https://host/v1"],
    ),
    "openai without a model": (
        {"provider": "openai", "openai_base_url": "http://h/v1", "openai_model": " "},
        ["openai_model is empty"],
    ),
    "a model that nobody asks": (
        {"openai_base_url": "http://h/v1"},
        ["openai_base_url is set", "provider is simulated", "provider to openai"],
    ),
    "a key that no header may hold": (
        {"openai_api_key": f"{SECRET}\n"},
        ["openai_api_key holds characters"],
    ),
    "a user in the model's address": (
        {"provider": "openai", "openai_model": "m", "openai_base_url": f"http://u:{SECRET}@h/v1"},
        ["openai_base_url must not name a user", "openai_api_key"],
    ),
    "xingchen without a key": (
        {"provider": "xingchen", "xingchen_api_secret": SECRET, "stages": FLOW},
        ["provider is xingchen", "xingchen_api_key is empty"],
    ),
    "xingchen without a secret": (
        {"provider": "xingchen", "xingchen_api_key": SECRET, "stages": FLOW},
        ["provider is xingchen", "xingchen_api_secret is empty"],
    ),
    "xingchen without a workflow": (
        {"provider": "xingchen", "xingchen_api_key": SECRET, "xingchen_api_secret": SECRET},
        ["provider is xingchen", "stages.evaluation.flow_id"],
    ),
    "a workflow that nobody runs": (
        {"xingchen_api_key": SECRET},
        ["xingchen_api_key is set", "provider is simulated", "provider to xingchen"],
    ),
    "a key of xingchen that no header may hold": (
        {"xingchen_api_key": f"{SECRET}\n", **OPENAI},
        ["xingchen_api_key holds characters"],
    ),
    "a secret that no header may hold": (
        {"xingchen_api_secret": f"{SECRET} é"},
        ["xingchen_api_secret holds characters"],
    ),
    "key and secret in one": (
        {"xingchen_api_key": f"{SECRET}:x", **OPENAI},
        ["xingchen_api_key holds a colon", "xingchen_api_secret"],
    ),
    "a user in the workflows' address": (
        {"xingchen_base_url": f"https://u:{SECRET}@h"},
        ["xingchen_base_url must not name a user", "xingchen_api_key"],
    ),
    "local with a redis": (
        {"mode": "local", "redis_url": "redis://h"},
        ["mode is local", "redis_url", "hybrid"],
    ),
    "open to all without tokens": (
        {"bind": "0.0.0.0:8000"},
        ["bind (0.0.0.0:8000)", "api_tokens", "127.0.0.1"],
    ),
    "one of two addresses open": (
        {"bind": "127.0.0.1:8000, [::]:8000"},
        ["api_tokens"],
    ),
    "statsd host with a port": ({"statsd_host": "statsd:8125"}, ["statsd_host", "statsd_port"]),
    "statsd host as a url": ({"statsd_host": "udp://statsd"}, ["statsd_host"]),
}

OPENAI_URLS = [
    "host/v1",
    "ftp://host/v1",
    "http://",
    "http:///v1",
    f"https://u:{SECRET}@h:port/v1",
    f"https://h/v1?key={SECRET}",
    f"https://h/v1#{SECRET}",
    "https://h/v 1",
]


def message(**values: Any) -> str:
    with pytest.raises(SettingsError) as refused:
        Settings.checked(**values)
    assert refused.value.code == "SETTINGS_INVALID"
    assert not refused.value.retryable
    with pytest.raises(ValidationError) as raw:
        Settings(**values)
    for text in (str(refused.value), repr(refused.value), str(raw.value), repr(raw.value)):
        assert SECRET not in text
    return str(refused.value)


@pytest.mark.parametrize(("values", "named"), REFUSED.values(), ids=REFUSED)
def test_a_contradiction_names_both_settings_and_the_fix(
    values: dict[str, Any], named: list[str]
) -> None:
    told = message(**values)
    assert "settings are wrong" not in told
    for part in named:
        assert part in told


@pytest.mark.parametrize("url", OPENAI_URLS)
def test_a_model_url_that_cannot_work_is_refused(url: str) -> None:
    told = message(provider="openai", openai_base_url=url, openai_model="m")
    assert told.startswith("openai_base_url must ")


@pytest.mark.parametrize(
    "tokens",
    [
        {"": "tenant"},
        {f"{SECRET} ": "tenant"},
        {f"{SECRET}\n": "tenant"},
        {f"{SECRET}\u2003": "tenant"},
        {f"{SECRET}\ud800": "tenant"},
        {SECRET: "a\0b"},
        {SECRET: "é" * 151},
        {SECRET: ""},
        {SECRET: " "},
        {SECRET: 5},
        {SECRET: None},
        {SECRET: {SECRET: SECRET}},
        [SECRET],
        SECRET,
        {5: "tenant"},
    ],
)
def test_tokens_that_cannot_work_are_refused_and_never_shown(tokens: Any) -> None:
    assert message(api_tokens=tokens).startswith("api_tokens must ")


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"workers": 0}, "workers is 0: must be greater than or equal to 1 (default 2)"),
        ({"workers": "two"}, "workers is 'two': must be a valid integer (default 2)"),
        ({"grace_s": float("inf")}, "grace_s is inf: must be a finite number (default 25)"),
        ({"mode": "x"}, "mode is 'x': must be 'distributed', 'hybrid' or 'local'"),
        ({"namespace": "a{b}"}, "namespace is 'a{b}': must match pattern"),
        ({"statsd_prefix": "a..b"}, "statsd_prefix is 'a..b': must match pattern"),
        ({"wokers": 2}, "wokers is no setting: did you mean workers?"),
        ({"zzz": 2}, "zzz is no setting: remove it."),
        ({"stages": 5}, "stages is 5: must be a valid dictionary"),
        ({"stages": {"chat": 5}}, "stages.chat is 5: must be a valid dictionary"),
        (
            {"stages": {"chat": {"timout_ms": 5}}},
            "stages.chat.timout_ms is no setting: did you mean stages.chat.timeout_ms?",
        ),
        (
            {"stages": {"chat": {"timeout_ms": 5}}},
            "stages.chat.timeout_ms is 5: must be greater than or equal to 10 (default 120000)",
        ),
        (
            {"stages": {"chat": {"retry_delays_ms": (100, 99)}}},
            "stages.chat.retry_delays_ms, value 2, is 99: must be greater than or equal to 100",
        ),
        ({"stages": {"chat": {"retry_delays_ms": [100, 100, 100]}}}, "retry_delays_ms is"),
        ({"custom_stages": ("Not good",)}, "custom_stages, value 1, is 'Not good'"),
        ({"openai_api_key": 5}, "openai_api_key must be a valid string"),
    ],
)
def test_a_wrong_value_names_the_setting_what_is_wrong_and_the_default(
    values: dict[str, Any], named: str
) -> None:
    assert named in message(**values)


def test_all_faults_are_told_at_once() -> None:
    told = message(heartbeat_ms=5_000, max_waiters=2_000, bind="nowhere")
    assert told.startswith("3 settings are wrong:\n  - ")
    assert told.count("\n  - ") == 3
