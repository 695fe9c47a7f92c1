"""Every failure is exactly one code, and the expected one."""

from __future__ import annotations

import http.client
import inspect
import re
from pathlib import Path

import gevent
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightsvc import errors
from flightsvc.checklist import UNKNOWN
from flightsvc.checklist.rules import Seen
from flightsvc.errors import (
    AnswerInvalid,
    AttemptTimeout,
    CallFailed,
    FailureType,
    FallbackAnswer,
    FlightSvcError,
    ProviderError,
    ProviderRejected,
    RequestError,
)
from flightsvc.flight.state import Failure
from tests.checklist.lists import CODE, merged
from tests.processes import ROOT

SHIPPED = merged()

#: the class of each of our errors → its code
BY_CLASS = {
    "FlightSvcError": UNKNOWN,
    "SettingsError": UNKNOWN,
    "RequestError": "REQUEST_INVALID",
    "InvalidKey": "REQUEST_INVALID",
    "InvalidInput": "REQUEST_INVALID",
    "Unauthenticated": "REQUEST_INVALID",
    "NotFound": "REQUEST_INVALID",
    "PayloadTooLarge": "REQUEST_INVALID",
    "BodyTooSlow": "BODY_TOO_SLOW",
    "SessionForgotten": "SESSION_FORGOTTEN",
    "UnsupportedFile": "FILE_TYPE_UNSUPPORTED",
    "UnreadableFile": "FILE_UNREADABLE",
    "EncryptedFile": "FILE_ENCRYPTED",
    "NoText": "NO_TEXT",
    "KeyConflict": "REQUEST_INVALID",
    "NestedFlight": "FLIGHT_NESTED",
    "SessionBusy": "SESSION_BUSY",
    "WaitTimeout": "WAIT_TIMEOUT",
    "TooManyWaiters": "TOO_MANY_WAITERS",
    "Draining": "DRAINING",
    "FlightInterrupted": "AI_ANSWER_INCOMPLETE",
    "CoordinationUnavailable": "COORDINATION_UNAVAILABLE",
    "ResultRejected": "RESULT_REJECTED",
    "RecordsError": "RECORDS_UNAVAILABLE",
    "FilesUnavailable": "FILES_UNAVAILABLE",
    "GuardError": UNKNOWN,
    "Overloaded": "OVERLOAD",
    "CircuitOpen": "CIRCUIT_OPEN",
    "AttemptTimeout": "AI_INFRA_TIMEOUT",
    "RetryExhausted": "RETRY_EXHAUSTED",
    "ModulePaused": "MODULE_PAUSED",
    "SkipRetry": UNKNOWN,
    "BudgetExhausted": "BUDGET_EXHAUSTED",
    "ProviderError": "PROVIDER_UNAVAILABLE",
    "ProviderUnreachable": "PROVIDER_UNREACHABLE",
    "AnswerCut": "AI_ANSWER_INCOMPLETE",
    "ProviderTimeout": "AI_INFRA_TIMEOUT",
    "ProviderUnavailable": "PROVIDER_UNAVAILABLE",
    "ProviderRateLimited": "PROVIDER_RATE_LIMITED",
    "ProviderRejected": "PROVIDER_REJECTED",
    "AnswerInvalid": "AI_MODEL_OUTPUT_MALFORMED",
}
#: codes that flightsvc gives errors today, and that are none of the list
BY_CODE = {
    "AI_ANSWER_EMPTY": "AI_MODEL_OUTPUT_MALFORMED",
    "AI_ANSWER_TOO_LARGE": "AI_MODEL_OUTPUT_MALFORMED",
    "ATTEMPT_TIMEOUT": "AI_INFRA_TIMEOUT",
    "CALL_TIMEOUT": "AI_INFRA_TIMEOUT",
    "CLIENT_GONE": "REQUEST_INVALID",
    "FLIGHT_INTERRUPTED": "AI_ANSWER_INCOMPLETE",
    "MODEL_NOT_FOUND": "REQUEST_INVALID",
    "INPUT_INVALID": "REQUEST_INVALID",
    "JSON_DUPLICATE_NAME": "REQUEST_INVALID",
    "JSON_INVALID": "REQUEST_INVALID",
    "KEY_CONFLICT": "REQUEST_INVALID",
    "KEY_INVALID": "REQUEST_INVALID",
    "NOT_FOUND": "REQUEST_INVALID",
    "PAYLOAD_TOO_LARGE": "REQUEST_INVALID",
    "PROVIDER_ERROR": "PROVIDER_UNAVAILABLE",
    "PROVIDER_TIMEOUT": "AI_INFRA_TIMEOUT",
    "RESULT_NOT_SERIALIZABLE": "RESULT_REJECTED",
    "RESULT_TOO_LARGE": "RESULT_REJECTED",
    "UNAUTHENTICATED": "REQUEST_INVALID",
    "UNEXPECTED": UNKNOWN,
    # these stop a command or the start, and no request ever meets them
    "SCRIPT_INVALID": UNKNOWN,
    "SETTINGS_INVALID": UNKNOWN,
    "TRACE_INVALID": UNKNOWN,
}


def told(code: str) -> CallFailed:
    """What a waiter in another worker is told."""
    return CallFailed(failure_type=FailureType.PROVIDER, code=code, retryable=True, status=503)


def classes() -> dict[str, type[FlightSvcError]]:
    found = inspect.getmembers(errors, inspect.isclass)
    return {name: kind for name, kind in found if issubclass(kind, FlightSvcError)}


def codes_in_the_source() -> set[str]:
    """Codes that some line of ours gives an error."""
    texts = [path.read_text() for path in (ROOT / "flightsvc").rglob("*.py")]
    texts += [path.read_text() for path in (ROOT / "lua").glob("*.lua")]
    found = re.findall(
        r'(?:default_code\b.*?= |code=|FailureType\.\w+, |_final\(.*)"([A-Z_]+)"', "\n".join(texts)
    )
    found += re.findall(r"'(FLIGHT_[A-Z_]+)'", "\n".join(texts))
    found += re.findall(r'\bcode="([A-Z_]+)"', "\n".join(texts))
    return set(found)


def test_every_class_of_ours_has_its_code() -> None:
    of_a_call = ("CallFailed", "FallbackAnswer", "CheckedFailure")
    made = {name for name in classes() if name not in of_a_call}
    assert made == set(BY_CLASS)
    for name, expected in BY_CLASS.items():
        assert SHIPPED.classify(classes()[name]()).name == expected, name


def test_every_code_of_ours_is_decided() -> None:
    """Each one is a code of the list, or a rule says which it is."""
    found = codes_in_the_source()
    assert {
        "RESULT_NOT_STORED",
        "FLIGHT_OWNERS_LOST",
        "CALL_TIMEOUT",
        "AI_CONTENT_FILTERED",
    } <= found
    assert found - set(SHIPPED.codes) == set(BY_CODE)
    for code in found:
        assert SHIPPED.classify(told(code)).name == BY_CODE.get(code, code), code


def test_what_another_worker_is_told_is_the_same_code() -> None:
    for name, kind in classes().items():
        if name in BY_CLASS:
            error = kind()
            here, there = SHIPPED.classify(error), SHIPPED.classify(Failure.of(error).error("", 0))
            assert here == there, name


def test_the_failure_type_of_a_code_is_that_of_its_errors() -> None:
    for name, expected in BY_CLASS.items():
        if expected not in (UNKNOWN,):
            kind, code = classes()[name], SHIPPED.code(expected)
            assert kind.failure_type == code.failure_type, name
            if expected != "REQUEST_INVALID":  # one row for many kinds of 4xx
                assert (kind.status, kind.retryable) == (code.status, code.retryable), name


def test_the_caller_s_401_in_another_worker_is_still_known() -> None:
    """What the rules found out goes along as the code; nothing else has to."""
    found = SHIPPED.classify(ProviderRejected(upstream_status=401), "openai")
    assert SHIPPED.classify(told(found.name)) == found


def test_an_error_that_names_a_code_is_that_code() -> None:
    class OrderNotFound(FlightSvcError):
        default_code = "AI_ORDER_NOT_FOUND"

    class TheirModelFailed(ProviderError):
        default_code = "AI_QA_UNREACHABLE"

    class Plain(Exception):
        code = "AI_PAYMENT_FAILED"

    assert SHIPPED.classify(OrderNotFound()).name == "AI_ORDER_NOT_FOUND"
    assert SHIPPED.classify(TheirModelFailed(upstream_status=503), "openai").name == (
        "AI_QA_UNREACHABLE"
    )
    assert SHIPPED.classify(Plain()).name == "AI_PAYMENT_FAILED"
    named = ProviderError(code="AI_CRM_SYNC_LOST", upstream_status=401)
    assert SHIPPED.classify(named, "openai").name == "AI_CRM_SYNC_LOST"
    assert SHIPPED.classify(AnswerInvalid(code="AI_ANSWER_TRUNCATED")).name == "AI_ANSWER_TRUNCATED"
    for name in SHIPPED.codes:
        assert SHIPPED.classify(FlightSvcError(code=name)).name == name


def test_a_code_that_is_no_text_names_nothing() -> None:
    with pytest.raises(SystemExit) as left:
        raise SystemExit(3)
    assert SHIPPED.classify(left.value).name == UNKNOWN


PLAIN: dict[str, tuple[BaseException, str]] = {
    "ValueError": (ValueError("x"), UNKNOWN),
    "MemoryError": (MemoryError(), UNKNOWN),
    "kill": (gevent.GreenletExit(), UNKNOWN),
    "timeout": (TimeoutError(), "AI_INFRA_TIMEOUT"),
    "gevent timeout": (gevent.Timeout(1), "AI_INFRA_TIMEOUT"),
    "refused": (ConnectionRefusedError(), "PROVIDER_UNREACHABLE"),
    "reset": (ConnectionResetError(), "PROVIDER_UNREACHABLE"),
    "cut": (http.client.IncompleteRead(b""), UNKNOWN),
    "gpu": (RuntimeError("CUDA error: out of memory"), "AI_MODEL_OOM"),
    "runtime": (RuntimeError("out of memory"), UNKNOWN),
}


@pytest.mark.parametrize("name", PLAIN)
def test_what_a_library_user_s_call_may_raise(name: str) -> None:
    error, expected = PLAIN[name]
    assert SHIPPED.classify(error).name == expected


def test_a_class_may_be_named_with_its_module() -> None:
    own = merged(
        f"[codes.AI_NEW]{CODE}[[match]]\nto = 'AI_NEW'\nexception = 'http.client.HTTPException'\n"
    )
    assert own.classify(http.client.BadStatusLine("x")).name == "AI_NEW"
    assert own.classify(ValueError()).name == UNKNOWN


def test_what_stands_for_a_failure_is_that_failure() -> None:
    inner = AttemptTimeout()
    stand_in = FallbackAnswer("text", action="template", failure=inner)
    told_here = told("SOMETHING")
    told_here.__cause__ = stand_in
    assert SHIPPED.classify(stand_in).name == "AI_INFRA_TIMEOUT"
    assert SHIPPED.classify(told_here).name == "AI_INFRA_TIMEOUT"
    assert SHIPPED.classify(told("SOMETHING")).name == UNKNOWN


ANY_ERROR = st.one_of(
    st.builds(
        lambda kind, text: kind(text),
        st.sampled_from([Exception, ValueError, OSError, RuntimeError, TimeoutError, RequestError]),
        st.text(max_size=50),
    ),
    st.builds(
        ProviderError,
        st.text(max_size=20),
        code=st.one_of(st.none(), st.text(max_size=8), st.sampled_from([*SHIPPED.codes])),
        upstream_status=st.one_of(st.none(), st.integers(-1, 1000)),
        upstream_code=st.one_of(st.none(), st.text(max_size=8), st.integers(0, 30_000).map(str)),
    ),
)


@given(ANY_ERROR, st.sampled_from(["", "openai", "xingchen", "simulated", "mine"]))
def test_any_failure_is_one_code_by_the_first_rule_that_fits(
    error: BaseException, provider: str
) -> None:
    found = SHIPPED.classify(error, provider)
    assert found is SHIPPED.code(found.name)
    code = getattr(error, "code", None)
    if code in SHIPPED.codes and code != getattr(type(error), "default_code", None):
        assert found.name == code
        return
    seen = Seen.of(error, provider)
    fitting = [rule.to for rule in SHIPPED.classifier.rules if rule.fits(seen)]
    assert found.name == (fitting or [UNKNOWN])[0]


def test_the_shipped_rules_lead_to_codes_and_are_all_reached() -> None:
    reached = {rule.to for rule in SHIPPED.classifier.rules}
    assert reached <= set(SHIPPED.codes)
    by_name_only = set(SHIPPED.codes) - reached - {UNKNOWN}
    assert {"AI_INPUT_EMPTY", "AI_PAYMENT_FAILED", "RETRY_EXHAUSTED"} <= by_name_only


def test_the_list_is_where_the_package_is() -> None:
    assert (Path(ROOT) / "flightsvc/checklist/checklist.toml").is_file()
