"""What must happen for each code: written by hand from the article, not read from the list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: how the model answers, as a rule of its script
Behave = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One code.

    :param behave: what the primary model answers; None: a supplier raises the code.
    :param attempts: on the primary route.
    :param waits_s: shortest time until the answer, in s.
    :param fallback: what ``Flight-Fallback`` says; empty: there is no such header.
    :param status: HTTP status of the answer.
    :param event: the state change that goes out after one failure.
    :param alert: its policy.
    :param at_once: whether one failure is enough to tell.
    :param small: attempts on the smaller model, which answers.
    """

    behave: Behave | None = None
    attempts: int = 1
    waits_s: float = 0.0
    fallback: str = ""
    status: int = 503
    event: str = ""
    alert: str = ""
    at_once: bool = False
    small: int = 0


def error(code: str | int) -> Behave:
    return {"body": {"error": {"message": "no", "code": code, "type": "invalid"}}}


def backoff(behave: Behave | None, alert: str = "provider_failure_rate") -> Row:
    """100 and 300 ms, then the smaller model after 900 ms."""
    return Row(behave, 3, 1.3, "smaller_model", 200, alert=alert, small=1)


ROWS: dict[str, Row] = {
    # the article's twelve
    "AI_INFRA_TIMEOUT": backoff({"status": 504}, "infra_timeout_rate"),
    "AI_MODEL_OOM": Row(
        error("context_length_exceeded"),
        2,
        0,
        "truncate",
        200,
        alert="input_too_long",
        at_once=True,
    ),
    "AI_QA_UNREACHABLE": Row(alert="knowledge_base_down"),
    "AI_INFRA_UNAVAILABLE": Row(
        error("get_channel_failed"),
        fallback="refuse",
        event="freeze_session",
        alert="infra_unavailable_p1",
        at_once=True,
    ),
    "AI_MODEL_CONFIDENCE_LOW": Row(
        fallback="clarify",
        status=200,
        event="clarifying",
        alert="low_confidence_daily",
        at_once=True,
    ),
    "AI_INPUT_SENSITIVE": Row(
        error("content_policy_violation"),
        fallback="refuse",
        status=422,
        event="block_user",
        alert="sensitive_input_alert",
        at_once=True,
    ),
    "AI_PAYMENT_FAILED": Row(
        fallback="manual_review",
        event="manual_review",
        alert="payment_manual_review_ticket",
        at_once=True,
    ),
    "AI_INFRA_MAINTENANCE": Row(
        error("maintenance"),
        fallback="template",
        status=200,
        alert="maintenance_notice",
        at_once=True,
    ),
    "AI_MODEL_DRIFT_DETECTED": Row(alert="model_drift", at_once=True),
    "AI_INPUT_MALFORMED": Row(fallback="refuse", status=422),
    "AI_CRM_SYNC_LOST": Row(alert="crm_sync_lost"),
    # what came to them
    "AI_ORDER_NOT_FOUND": Row(fallback="ask_input", status=200, event="awaiting_input"),
    "AI_ORDER_CANCEL_FAILED": Row(
        fallback="manual_review", event="manual_review", alert="order_review_ticket", at_once=True
    ),
    "AI_PAY_TIMEOUT": Row(
        fallback="manual_review",
        status=504,
        event="manual_review",
        alert="payment_manual_review_ticket",
        at_once=True,
    ),
    "AI_CONTEXT_TRUNCATED": Row(attempts=2, status=422),
    "AI_CONTENT_FILTERED": Row({"finish_reason": "content_filter"}, fallback="refuse"),
    "AI_MODEL_OUTPUT_MALFORMED": Row(
        {"answer": "text", "text": "I would say 80."}, alert="malformed_output_rate"
    ),
    # the model, or the way to it
    "PROVIDER_UNREACHABLE": backoff({"cut_before_answer": True}),
    "PROVIDER_UNAVAILABLE": backoff({"status": 500}),
    "PROVIDER_RATE_LIMITED": backoff({"status": 429}),
    "PROVIDER_QUOTA_EXHAUSTED": Row(
        {"status": 402},
        fallback="smaller_model",
        status=200,
        alert="provider_access_p1",
        at_once=True,
        small=1,
    ),
    "PROVIDER_AUTH_FAILED": Row({"status": 401}, alert="provider_access_p1", at_once=True),
    "PROVIDER_REJECTED": Row({"status": 400}, alert="provider_failure_rate"),
    "AI_ANSWER_INCOMPLETE": backoff({"finish_reason": None}),
    "AI_ANSWER_TRUNCATED": Row({"finish_reason": "length"}, alert="malformed_output_rate"),
    # what a program of the host brings about
    "RECORDS_UNAVAILABLE": Row(alert="unknown_errors"),
    "FILES_UNAVAILABLE": Row(alert="unknown_errors"),
    "BODY_TOO_SLOW": Row(status=408),
    "AI_UNKNOWN_ERROR": Row(status=500, alert="unknown_errors"),
}
#: codes with a real condition of their own, each a test in test_conditions.py,
#: test_flight_conditions.py, test_file_conditions.py or test_stand_ins.py
CONDITIONS = {
    "AI_INPUT_EMPTY",
    "FILE_ENCRYPTED",
    "FILE_TYPE_UNSUPPORTED",
    "FILE_UNREADABLE",
    "NO_TEXT",
    "FLIGHT_NESTED",
    "FLIGHT_OWNERS_LOST",
    "RESULT_NOT_STORED",
    "SESSION_BUSY",
    "SESSION_FORGOTTEN",  # tests/stages/test_kept.py
    "RETRY_EXHAUSTED",
    "CIRCUIT_OPEN",
    "OVERLOAD",
    "BUDGET_EXHAUSTED",
    "MODULE_PAUSED",
    "RESULT_REJECTED",
    "WAIT_TIMEOUT",
    "TOO_MANY_WAITERS",
    "DRAINING",
    "COORDINATION_UNAVAILABLE",
    "REQUEST_INVALID",
}
