"""The shipped list says what the article's tables and text say (second article, 3.1, 3.2, 4.2)."""

from __future__ import annotations

import pytest

from flightsvc.checklist import Code
from tests.checklist.lists import merged

SHIPPED = merged()

#: 3.1: level, cause, action, state change
TABLE = {
    "AI_INFRA_TIMEOUT": ("L1", "infrastructure", "smaller_model", None),
    "AI_MODEL_OOM": ("L1", "model", "truncate", None),
    "AI_INPUT_EMPTY": ("L1", "input", "template", None),
    "AI_QA_UNREACHABLE": ("L1", "integration", "last_good", None),
    "AI_INFRA_UNAVAILABLE": ("L2", "infrastructure", "refuse", "freeze_session"),
    "AI_MODEL_CONFIDENCE_LOW": ("L2", "model", "clarify", "clarifying"),
    "AI_INPUT_SENSITIVE": ("L2", "input", "refuse", "block_user"),
    "AI_PAYMENT_FAILED": ("L2", "integration", "manual_review", "manual_review"),
    "AI_INFRA_MAINTENANCE": ("L3", "infrastructure", "template", None),
    "AI_MODEL_DRIFT_DETECTED": ("L3", "model", "none", "rollback_model"),
    "AI_INPUT_MALFORMED": ("L3", "input", "refuse", None),
    "AI_CRM_SYNC_LOST": ("L3", "integration", "none", "stop_sync"),
}
#: in the text
FURTHER = {
    "AI_ORDER_NOT_FOUND": ("L2", "integration", "ask_input", "awaiting_input"),
    "AI_ORDER_CANCEL_FAILED": ("L2", "integration", "manual_review", "manual_review"),
    "AI_PAY_TIMEOUT": ("L2", "integration", "manual_review", "manual_review"),
    "AI_CONTEXT_TRUNCATED": ("L1", "model", "truncate", None),
    "AI_CONTENT_FILTERED": ("L1", "model", "refuse", None),
    "AI_MODEL_OUTPUT_MALFORMED": ("L2", "model", "none", None),
    "RETRY_EXHAUSTED": ("L2", "infrastructure", "manual_review", "manual_review"),
}


@pytest.mark.parametrize("name", [*TABLE, *FURTHER])
def test_level_cause_action_and_state(name: str) -> None:
    code = SHIPPED.code(name)
    kind = code.state.kind if code.state else None
    said = (code.level, code.cause, code.fallback.action, kind)
    assert said == (TABLE | FURTHER)[name]


def test_the_table_is_three_levels_by_four_causes() -> None:
    assert len({(level, cause) for level, cause, *_ in TABLE.values()}) == 12


def test_only_what_passes_by_itself_is_retried() -> None:
    """After 100 and 300 ms on the primary route; the third step, 900 ms later, is the fallback."""
    retried = {code.name: code for code in SHIPPED if code.retry}
    assert set(retried) == {
        "AI_INFRA_TIMEOUT",
        "AI_ANSWER_INCOMPLETE",
        "PROVIDER_RATE_LIMITED",
        "PROVIDER_UNAVAILABLE",
        "PROVIDER_UNREACHABLE",
    }
    for code in retried.values():
        assert code.retry is not None
        assert code.retry.delays_ms == (100, 300)
        assert code.retry.fallback_route_after_ms == 900
        assert code.fallback.action == "smaller_model"


def test_a_payment_is_never_retried() -> None:
    for name in ("AI_PAYMENT_FAILED", "AI_PAY_TIMEOUT"):
        code = SHIPPED.code(name)
        assert code.forbids_retry
        assert not code.retryable
        assert code.retry is None
        assert code.fallback.params == {"queue": "payment"}


def test_params_of_the_actions() -> None:
    def params(name: str) -> dict[str, object]:
        return dict(SHIPPED.code(name).fallback.params)

    assert params("AI_MODEL_OOM") == {"max_tokens": 512, "marker": "[TRUNCATED]"}
    assert params("AI_ORDER_NOT_FOUND") == {"field": "order_id", "wait_s": 30}
    assert params("AI_QA_UNREACHABLE") == {"max_age_s": 86_400, "refresh": True}


def test_how_long_states_hold() -> None:
    def state(name: str) -> tuple[int, int]:
        change = SHIPPED.code(name).state
        assert change is not None
        return change.ttl_s, change.after

    assert state("AI_INPUT_SENSITIVE") == (72 * 3600, 1)
    assert state("AI_ORDER_CANCEL_FAILED") == (300, 1)
    assert state("AI_ORDER_NOT_FOUND") == (30, 1)  # as long as the user is told to take
    assert state("AI_MODEL_DRIFT_DETECTED") == (0, 3)
    assert state("AI_CRM_SYNC_LOST") == (0, 5)


def test_what_trips_and_what_pauses() -> None:
    drift, crm = SHIPPED.code("AI_MODEL_DRIFT_DETECTED"), SHIPPED.code("AI_CRM_SYNC_LOST")
    assert (drift.trips_after, drift.pauses) == (3, False)
    assert (crm.trips_after, crm.pauses) == (10, True)
    assert SHIPPED.code("AI_INFRA_TIMEOUT").trips_after == 10
    assert SHIPPED.code("AI_INPUT_EMPTY").trips_after == 0


def test_who_is_woken_by_a_module_that_needs_a_person() -> None:
    for code in SHIPPED:
        told = code.trips_alert
        assert (told.name if told else None) == ("needs_person" if code.trips_after else None)
        assert told is None or (told.severity, told.count) == ("P1", 1)


def test_alerts() -> None:
    def alert(name: str) -> Code:
        return SHIPPED.code(name)

    timeout = alert("AI_INFRA_TIMEOUT").alert
    assert timeout is not None
    assert (timeout.name, timeout.rate, timeout.severity) == ("infra_timeout_rate", 0.05, "P2")
    assert "wecom" in timeout.channels
    down = alert("AI_INFRA_UNAVAILABLE").alert
    assert down is not None
    assert (down.name, down.count, down.severity) == ("infra_unavailable_p1", 1, "P1")
    names = {code.name: code.alert.name for code in SHIPPED if code.alert}
    assert names["AI_INPUT_SENSITIVE"] == "sensitive_input_alert"
    assert names["AI_PAYMENT_FAILED"] == "payment_manual_review_ticket"
    confidence = alert("AI_MODEL_CONFIDENCE_LOW").alert
    assert confidence is not None
    assert confidence.window_s == 86_400


def test_every_alert_reaches_the_log_too() -> None:
    assert all("log" in policy.channels for policy in SHIPPED.alert_policies.values())


def test_what_the_user_is_told() -> None:
    said = {code.name: code.message("zh-CN") for code in SHIPPED}
    assert said["AI_INPUT_SENSITIVE"] == "内容需符合社区规范。"
    assert said["AI_MODEL_CONFIDENCE_LOW"] == "您是想咨询订单状态还是修改收货地址？"
    assert said["AI_PAYMENT_FAILED"] == "您的支付请求需人工审核，预计 2 小时内完成。"
    assert said["AI_INPUT_MALFORMED"] == "内容或文件格式异常，请检查后重新提交。"
    assert SHIPPED.code("AI_INPUT_EMPTY").message("en").startswith("Please tell me")


def test_everything_that_a_user_sees_is_said_in_both_languages() -> None:
    hidden = {code.name for code in SHIPPED if not code.user_sees}
    assert hidden == {"AI_MODEL_DRIFT_DETECTED", "AI_CRM_SYNC_LOST"}
    for code in SHIPPED:
        assert bool(code.message_zh) == bool(code.message_en) == code.user_sees
        assert any("\u4e00" <= sign <= "\u9fff" for sign in code.about_zh)
        assert code.about_en.isascii() or "“" in code.about_en
