"""Which provider is made, and what stops the start."""

from __future__ import annotations

from typing import Any

import pytest

from flightsvc.errors import SettingsError
from flightsvc.metrics import Metrics
from flightsvc.providers import make_provider
from flightsvc.providers.failures import LONGEST_RETRY_AFTER_S, retry_after_s
from flightsvc.settings import Settings

GOOD = {
    "provider": "openai",
    "openai_base_url": "https://api.example.com/v1/",
    "openai_model": "m",
    "openai_api_key": "k",
}


def make(**changes: Any) -> Any:
    return make_provider(Settings.checked(**{**GOOD, **changes}), Metrics.off())


def test_the_provider_that_the_settings_name_is_made() -> None:
    assert (make().name, make().model) == ("openai", "m")
    assert make(provider="simulated", openai_base_url="").name == "simulated"


@pytest.mark.parametrize(
    "url",
    ["", "api.example.com/v1", "ftp://x/v1", "http://", "http://u:p@x/v1", "http://x/v1?a=b", "::"],
)
def test_a_base_url_that_cannot_be_used_stops_the_start(url: str) -> None:
    with pytest.raises((SettingsError, ValueError), match="openai_base_url"):
        make(openai_base_url=url)


def test_a_missing_model_stops_the_start() -> None:
    with pytest.raises((SettingsError, ValueError), match="openai_model"):
        make(openai_model="")


@pytest.mark.parametrize("key", ["sk-1\r\nX-Evil: 1", "sk 1", "sk-é", "\n"])
def test_a_key_that_no_header_can_hold_stops_the_start_and_is_not_shown(key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        make(openai_api_key=key)
    assert "openai_api_key" in str(caught.value)
    assert key not in str(caught.value)


NOW = 1_000_000_000.0  # Sun, 09 Sep 2001 01:46:40 GMT


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("7", 7),
        (" 7 ", 7),
        ("0", 0),
        ("1.5", 1.5),
        ("9" * 5_000, LONGEST_RETRY_AFTER_S),
        ("Sun, 09 Sep 2001 01:46:50 GMT", 10),
        ("Sunday, 09-Sep-01 01:46:50 GMT", 10),
        ("Sun Sep  9 01:46:50 2001", 10),
        ("Sun, 09 Sep 2001 01:46:50 -0000", 10),
        ("Sun, 09 Sep 2001 01:46:30 GMT", None),
        ("Fri, 31 Dec 2099 23:59:59 GMT", LONGEST_RETRY_AFTER_S),
        ("Sun, 99 Sep 2001 01:46:50 GMT", None),
        ("-7", None),
        ("7s", None),
        ("٧", None),
        ("inf", None),
        ("nan", None),
        ("7, 8", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after(value: str | None, wait_s: float | None) -> None:
    assert retry_after_s(value, NOW) == wait_s
