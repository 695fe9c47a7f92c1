"""Lines as the formatters write them: the schema, and nobody's words in them."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightsvc.errors import FallbackAnswer, ProviderRateLimited
from flightsvc.facts import CallFacts
from flightsvc.logs import Told, configure, formatter, log_failure, log_request
from flightsvc.logs.fields import FIELDS, GOLDEN
from flightsvc.logs.formats import JsonFormatter, TextFormatter
from flightsvc.logs.stack import STACK_LENGTH, stack_of
from flightsvc.logs.table import table
from flightsvc.settings import Settings
from flightsvc.tracing import TraceContext
from tests.logs.reading import Written, faults, read

#: a pipe takes as much in one piece, so that lines of several workers do not mix
PIPE_BUF = 4096
DOCS = Path(__file__).parents[2] / "docs" / "logs.md"


def request(facts: CallFacts, **values: Any) -> None:
    given: dict[str, Any] = {
        "trace": TraceContext.new(),
        "facts": facts,
        "told": Told("0" * 32, 7, "owner"),
        "method": "POST",
        "route": "evaluations",
        "status": 200,
        "duration_s": 0.0123,
        **values,
    }
    log_request(**given)


def failing(message: str = "the candidate's words") -> Exception:
    try:
        raise LookupError(message)
    except LookupError as error:
        return error


def test_a_request_line_has_every_golden_field() -> None:
    facts = CallFacts(session_id="s1", tenant="acme", stage="evaluation", input_hash="ab" * 16)
    with Written(JsonFormatter()) as written:
        request(facts)

    line = json.loads(written.only)
    assert faults(line) == []
    assert {name: line[name] for name in GOLDEN} == {
        "trace_id": line["trace_id"],
        "session_id": "s1",
        "input_hash": "ab" * 16,
        "retry_count": 0,
        "fallback_action": None,
        "code": None,
        "fingerprint": None,
        "flight_id": "0" * 32,
        "fence": 7,
        "role": "owner",
    }
    assert (line["event"], line["level"], line["duration_ms"]) == ("request", "info", 12.3)
    assert line["time"].endswith("Z")
    assert len(line["time"]) == len("2026-01-02T03:04:05.678Z")


@pytest.mark.parametrize(
    ("status", "level"), [(200, "info"), (422, "info"), (500, "error"), (503, "warning")]
)
def test_the_level_says_whose_fault_it_was(status: int, level: str) -> None:
    with Written(JsonFormatter()) as written:
        request(CallFacts(), status=status)
    assert json.loads(written.only)["level"] == level


def test_what_the_guard_found_stands_in_the_failure_line() -> None:
    facts = CallFacts(
        trace_id="ab" * 16,
        retry_count=2,
        fallback_action="template",
        code="AI_INFRA_TIMEOUT",
        fingerprint="cd" * 8,
        warnings=["truncated"],
    )
    failure = ProviderRateLimited("No more.", upstream_status=429, upstream_code="quota")
    error = FallbackAnswer({"text": "the fallback's words"}, action="template", failure=failure)
    with Written(JsonFormatter()) as written:
        log_failure(facts, Told("0" * 32, 7, "owner"), error, duration_s=1.5, foreseen=True)

    line = json.loads(written.only)
    assert faults(line) == []
    assert line["level"] == "warning"
    assert (line["retry_count"], line["fallback_action"]) == (2, "template")
    assert (line["code"], line["fingerprint"]) == ("AI_INFRA_TIMEOUT", "cd" * 8)
    assert line["warnings"] == ["truncated"]
    assert line["detail"] == "No more. [429 quota]"
    assert "stack" not in line
    assert "fallback's words" not in written.only


@pytest.mark.parametrize("style", [JsonFormatter, TextFormatter])
@pytest.mark.parametrize("content", [False, True])
def test_what_nobody_foresaw_shows_its_places_and_only_if_allowed_its_words(
    style: type[JsonFormatter] | type[TextFormatter], content: bool
) -> None:
    with Written(style(content=content)) as written:
        log_failure(CallFacts(), Told(), failing(), duration_s=0, foreseen=False, content=content)
    assert "LookupError" in written.only
    assert "in failing" in written.only
    assert ("the candidate's words" in written.only) is content


@pytest.mark.parametrize("style", [JsonFormatter, TextFormatter])
def test_an_exception_that_any_part_of_ours_logs_shows_no_words_either(
    style: type[JsonFormatter] | type[TextFormatter],
) -> None:
    inner, outer = failing("inner words"), failing()
    with Written(style()) as written:
        try:
            raise inner from outer
        except LookupError:
            logging.getLogger("flightsvc.flight").exception("it failed")
    assert "it failed" in written.only
    assert "caused by" in written.only
    assert "inner words" not in written.only
    assert "the candidate's words" not in written.only


def test_gunicorns_own_exceptions_stay_readable() -> None:
    with Written(JsonFormatter(), "gunicorn.error") as written:
        try:
            raise OSError("address in use")
        except OSError:
            logging.getLogger("gunicorn.error").exception("cannot start")
    line = json.loads(written.only)
    assert faults(line) == []
    assert (line["event"], line["logger"]) == ("log", "gunicorn.error")
    assert "address in use" in line["stack"]


def test_a_record_of_somebody_else_cannot_pass_for_a_line_of_ours() -> None:
    with Written(JsonFormatter(), "other") as written:
        logging.getLogger("other").warning("hello", extra={"event": "request", "status": "x"})
    line = json.loads(written.only)
    assert faults(line) == []
    assert (line["event"], line["message"]) == ("log", "hello")


ANY = st.text(st.characters(exclude_categories=()), max_size=400)


@given(ANY, ANY, ANY, ANY)
def test_no_text_can_begin_a_line_or_make_one_too_long(
    session: str, tenant: str, code: str, method: str
) -> None:
    facts = CallFacts(
        session_id=session,
        tenant=tenant,
        stage=code,
        code=code,
        fingerprint=code,
        trace_id=code,
        input_hash=code,
        fallback_action=code,
        warnings=[code] * 20,
    )
    with Written(JsonFormatter()) as written, Written(TextFormatter()) as shown:
        request(facts, code=code, method=method, told=Told(code, 1, code))
        log_failure(facts, Told(code, 1, code), failing(), duration_s=1, foreseen=True)
    for text in written.lines:
        assert len(text.encode()) < PIPE_BUF
        assert text.isascii()
        assert text.isprintable()
        assert faults(json.loads(text)) == []
    for text in shown.lines:
        assert text.isprintable()


@given(ANY)
def test_a_message_cannot_forge_a_line_or_move_the_cursor(said: str) -> None:
    with Written(JsonFormatter()) as written, Written(TextFormatter()) as shown:
        logging.getLogger("flightsvc.some").warning("%s", said)
    assert written.only.isascii()
    assert written.only.isprintable()
    first, *more = shown.only.split("\n")
    assert first.startswith("[")
    assert all(line.startswith("  ") for line in more)
    assert not set(shown.only) & {"\x1b", "\r", "\x85", "\u2028", "\u202e", "\x9b"}


def test_a_deep_stack_keeps_its_ends() -> None:
    def fall(depth: int) -> None:
        if depth:
            fall(depth - 1)
        raise RecursionError("deep")

    try:
        fall(200)
    except RecursionError as error:
        stack = stack_of(error)
    assert len(stack) <= STACK_LENGTH + 10
    assert stack.startswith("builtins.RecursionError\n")
    assert "raise RecursionError" in stack[-200:]


def test_a_session_that_cannot_be_one_is_not_repeated() -> None:
    with Written(JsonFormatter()) as written:
        request(CallFacts(session_id="please print\nthis"))
    assert json.loads(written.only)["session_id"] == "(invalid)"


def test_fields_are_attributes_for_formatters_of_a_host_app() -> None:
    with Written(logging.Formatter("%(levelname)s %(message)s | %(role)s %(fence)s")) as written:
        request(CallFacts(session_id="s1"))
    assert written.only.startswith("INFO POST evaluations 200 in 12.3 ms role=owner session_id=s1")
    assert written.only.endswith("| owner 7")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("style", "stream", "kind"),
    [
        ("auto", io.StringIO(), JsonFormatter),
        ("auto", Terminal(), TextFormatter),
        ("json", Terminal(), JsonFormatter),
        ("text", io.StringIO(), TextFormatter),
    ],
)
def test_the_form_is_chosen_by_setting_and_stream(
    style: str, stream: io.StringIO, kind: type[logging.Formatter]
) -> None:
    settings = Settings.model_validate({"mode": "local", "log_format": style})
    assert type(formatter(settings, stream)) is kind


def test_a_program_of_its_own_has_the_lines_where_it_wants_them() -> None:
    logger, stream = logging.getLogger("flightsvc"), io.StringIO()
    before = (logger.handlers[:], logger.level, logger.propagate)
    try:
        configure(Settings(mode="local"), stream)
        configure(Settings(mode="local"), stream)  # not twice
        request(CallFacts())
        logging.getLogger("flightsvc.store").debug("too small to tell")
    finally:
        logger.handlers[:], logger.level, logger.propagate = before
    (line,) = read(stream.getvalue())
    assert line["event"] == "request"


def test_a_stream_in_ascii_takes_every_line() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    record = logging.LogRecord("flightsvc", 20, "", 0, "模型 \ud800", None, None)
    handler.emit(record)
    assert read(raw.getvalue().decode())[0]["message"] == "模型 \ud800"


def test_the_page_holds_the_schema() -> None:
    _, inside, _ = DOCS.read_text(encoding="utf-8").split("<!-- fields -->")
    assert inside.strip() == table().strip(), "run: python -m flightsvc.logs.table"


def test_the_golden_fields_are_in_the_schema_once() -> None:
    names = [one.name for one in FIELDS]
    assert len(set(names)) == len(names)
    for one in FIELDS:
        if one.name in GOLDEN:
            assert {"request", "failure"} <= set(one.events)
