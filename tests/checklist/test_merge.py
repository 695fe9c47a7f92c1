"""A user's file changes what it names and nothing else; each value's origin is known."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from flightsvc.checklist import Checklist
from flightsvc.checklist.explain import explain
from flightsvc.errors import ProviderRejected, ProviderTimeout
from flightsvc.settings import Settings
from tests.checklist.lists import CODE, OWN, merged


def others(checklist: Checklist, *but: str) -> dict[str, object]:
    return {code.name: code for code in checklist if code.name not in but}


def test_one_field_of_a_code_changes_alone() -> None:
    base, own = merged(), merged("[codes.OVERLOAD]\nstatus = 429\n")
    assert own.code("OVERLOAD") == replace(base.code("OVERLOAD"), status=429)
    assert others(own, "OVERLOAD") == others(base, "OVERLOAD")


def test_one_field_of_a_policy_changes_for_all_codes_that_use_it() -> None:
    own = merged("[retry.backoff]\ndelays_ms = [200]\n")
    changed = [code for code in own if code.retry]
    assert len(changed) > 3
    assert {code.retry.delays_ms for code in changed if code.retry} == {(200,)}
    assert {code.retry.fallback_route_after_ms for code in changed if code.retry} == {900}


def test_codes_policies_and_rules_are_added() -> None:
    own = merged(
        f"""
        [codes.AI_NEW]{CODE}
        [codes.AI_NEWER]{CODE.replace('"nothing"', '"mine"')}
        [fallback.mine]
        action = "manual_review"
        queue = "mine"
        [[match]]
        to = "AI_NEW"
        exception = "NewError"
        """
    )

    class NewError(Exception):
        pass

    assert own.classify(NewError()).name == "AI_NEW"
    assert own.code("AI_NEWER").fallback.params == {"queue": "mine"}
    assert own.fallback_policy("mine").action == "manual_review"


def test_rules_of_the_user_s_come_first() -> None:
    own = merged("[[match]]\nto = 'PROVIDER_REJECTED'\nexception = 'ProviderTimeout'\n")
    assert own.classify(ProviderTimeout()).name == "PROVIDER_REJECTED"
    assert merged().classify(ProviderTimeout()).name == "AI_INFRA_TIMEOUT"


def test_none_takes_a_policy_away() -> None:
    own = merged(
        "[codes.AI_INFRA_TIMEOUT]\nretry = 'none'\nalert = 'none'\n"
        "[codes.AI_INFRA_UNAVAILABLE]\nstate = { kind = 'none' }\n"
    )
    code = own.code("AI_INFRA_TIMEOUT")
    assert (code.retry, code.alert) == (None, None)
    assert own.code("AI_INFRA_UNAVAILABLE").state is None


def test_a_state_change_is_replaced_whole() -> None:
    own = merged("[codes.AI_INFRA_UNAVAILABLE]\nstate = { kind = 'manual_review' }\n")
    state = own.code("AI_INFRA_UNAVAILABLE").state
    assert state is not None
    assert (state.kind, state.ttl_s) == ("manual_review", 0)


def test_another_action_drops_the_params_of_the_former() -> None:
    own = merged("[fallback.shorter_input]\naction = 'refuse'\n")
    assert own.code("AI_MODEL_OOM").fallback.params == {}
    same = merged("[fallback.shorter_input]\naction = 'truncate'\nmax_tokens = 100\n")
    assert same.code("AI_MODEL_OOM").fallback.params == {
        "max_tokens": 100,
        "marker": "[TRUNCATED]",
    }


def test_a_code_can_be_hidden_from_users() -> None:
    code = merged("[codes.AI_INFRA_TIMEOUT]\nuser_sees = false\n").code("AI_INFRA_TIMEOUT")
    assert (code.user_sees, code.message_zh, code.message_en) == (False, "", "")
    assert merged().code("AI_INFRA_TIMEOUT").message_en


def test_a_count_takes_the_place_of_a_rate_and_back() -> None:
    own = merged("[alert.overload_rate]\ncount = 7\n[alert.circuit_open]\nrate = 0.5\n")
    counted, rated = own.alert_policy("overload_rate"), own.alert_policy("circuit_open")
    assert (counted.count, counted.rate, counted.min_calls) == (7, None, 1)
    assert (rated.count, rated.rate) == (None, 0.5)


def test_the_number_of_failures_that_trip_is_a_setting() -> None:
    base, own = merged(), merged("trips_after = 4\n")
    for code in base:
        expected = 4 if code.trips_after == 10 and code.name != "AI_CRM_SYNC_LOST" else None
        wanted = code.trips_after if expected is None else expected
        assert own.code(code.name).trips_after == wanted


def test_each_value_says_where_it_comes_from() -> None:
    own = merged(
        "[codes.AI_INFRA_TIMEOUT]\nmessage_en = 'Mine.'\n\n[retry.backoff]\ndelays_ms = [200]\n"
        "[[match]]\nto = 'AI_INFRA_TIMEOUT'\nexception = 'TheirTimeout'\n"
    )
    lines = {
        line.split()[0]: line for line in explain(own, "AI_INFRA_TIMEOUT").splitlines() if line
    }
    assert "Mine." in lines["message_en"]
    assert lines["message_en"].endswith(f"{OWN}:2 (yours)")
    assert lines["delays_ms"].endswith(f"{OWN}:5 (yours)")
    assert "shipped" in lines["fallback_route_after_ms"]
    assert "checklist.toml:" in lines["message_zh"]
    assert lines["pauses"].endswith("default")
    assert "checklist.toml:7 (shipped)" in lines["trips_after"]
    assert "error TheirTimeout" in explain(own, "AI_INFRA_TIMEOUT")
    assert f"{OWN}:6 (yours)" in explain(own, "AI_INFRA_TIMEOUT")


def test_an_unknown_code_is_named_with_the_nearest() -> None:
    with pytest.raises(KeyError, match="did you mean AI_INFRA_TIMEOUT"):
        merged().code("AI_INFRA_TIMEOU")


def test_a_list_does_not_change_and_can_be_sent_to_another_process() -> None:
    checklist = merged("[codes.OVERLOAD]\nstatus = 429\n")
    with pytest.raises(TypeError):
        checklist.codes["X"] = checklist.code("OVERLOAD")  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        checklist.code("OVERLOAD").status = 1  # type: ignore[misc]
    copy = pickle.loads(pickle.dumps(checklist))
    assert copy.codes == checklist.codes
    assert copy.classify(ProviderRejected(upstream_status=401), "openai").name == (
        "PROVIDER_AUTH_FAILED"
    )


def test_the_stage_bounds_the_retries_of_a_code() -> None:
    stages: dict[str, Any] = {
        "chat": {"retry_delays_ms": [500]},
        "follow_up": {"retry_delays_ms": [100, 100]},
    }
    settings = Settings(stages=stages)
    checklist = merged("", settings)
    code = checklist.code("PROVIDER_UNAVAILABLE")
    delays = {name: checklist.delays_ms(code, each) for name, each in settings.stages.items()}
    assert delays["evaluation"] == (100, 300)
    assert delays["chat"] == (500,)
    assert delays["follow_up"] == (100, 300)
    assert delays["demeanor"] == ()
    assert checklist.delays_ms(checklist.code("OVERLOAD"), settings.stage("chat")) == ()
