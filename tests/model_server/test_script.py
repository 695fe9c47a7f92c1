"""Scripts: which rule a call falls under, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from flightsvc.errors import SettingsError
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.model_server.rules import Script, read_script

Raw = Callable[..., bytes]


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def test_the_first_rule_that_fits_wins(server: ModelServerProcess, raw: Raw) -> None:
    server.script(
        {
            "rules": [
                {"match": {"model": "other"}, "behave": {"status": 501}},
                {"match": {"last_user_contains": "slow"}, "behave": {"status": 502}},
                {"match": {"body_contains": '"seed": 7'}, "behave": {"status": 503}},
                {"match": {"stream": True}, "behave": {"status": 504}},
            ],
            "default": {"status": 505},
        }
    )
    assert status(raw("slow", model="other")) == 501
    assert status(raw("slow", stream=True)) == 502
    assert status(raw("fast", seed=7, stream=True)) == 503
    assert status(raw("fast", stream=True)) == 504
    assert status(raw("fast")) == 505


def test_nth_and_times_count_the_calls_that_fit(server: ModelServerProcess, raw: Raw) -> None:
    server.script(
        [
            {"name": "odd", "match": {"model": "a", "nth": [1, 3]}, "behave": {"status": 501}},
            {"name": "first", "match": {"model": "b", "times": 2}, "behave": {"status": 502}},
        ]
    )
    assert [status(raw(model="a")) for _ in range(4)] == [501, 200, 501, 200]
    assert [status(raw(model="b")) for _ in range(4)] == [502, 502, 200, 200]
    assert server.stats()["by_rule"] == {"odd": 2, "first": 2, "default": 4}


def test_a_new_script_counts_anew(server: ModelServerProcess, raw: Raw) -> None:
    rule: dict[str, Any] = {"match": {"times": 1}, "behave": {"status": 503}}
    server.script([rule])
    assert [status(raw()), status(raw())] == [503, 200]
    server.script([rule])
    assert [status(raw()), status(raw())] == [503, 200]
    assert server.stats()["calls"] == 4


@pytest.mark.parametrize(
    ("script", "place"),
    [
        ("", "the script"),
        ("{", "the script"),
        ("7", "the script"),
        ('{"rule": []}', "rule"),
        ('[{"behave": {"latency": 1}}]', "rules.0.behave.latency"),
        ('[{}, {"behave": {"latency_ms": "1"}}]', "rules.1.behave.latency_ms"),
        ('[{"behave": {"latency_ms": -1}}]', "rules.0.behave.latency_ms"),
        ('[{"behave": {"status": 99}}]', "rules.0.behave.status"),
        ('[{"behave": {"cut": "half"}}]', "rules.0.behave.cut"),
        ('[{"behave": {"text": "x"}}]', "rules.0.behave"),
        ('[{"behave": {"answer": "text"}}]', "rules.0.behave"),
        ('[{"behave": {"headers": {"A": "b\\r\\nC: d"}}}]', "rules.0.behave.headers.A"),
        ('[{"match": {"nth": [0]}}]', "rules.0.match.nth.0"),
        ('{"default": {"write_bytes": 0}}', "default.write_bytes"),
    ],
)
def test_a_wrong_script_is_refused_and_the_field_named(script: str, place: str) -> None:
    with pytest.raises(SettingsError, match=f"{place}: "):
        read_script(script)


def test_the_short_form_is_a_list() -> None:
    rules = [{"match": {"model": "m"}, "behave": {"status": 503}}]
    assert read_script(json.dumps(rules)) == read_script(json.dumps({"rules": rules}))
    assert read_script(b"[]") == Script()


def test_a_running_server_keeps_its_script_if_the_new_one_is_wrong(
    server: ModelServerProcess, raw: Raw
) -> None:
    server.script([{"behave": {"status": 503}}])
    with pytest.raises(ValueError, match=r"rules\.0\.behave\.oops"):
        server.script([{"behave": {"oops": 1}}])
    assert status(raw()) == 503
