"""The lines with the golden fields: one a request, one a failure."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from flightsvc.errors import FallbackAnswer, FlightSvcError
from flightsvc.facts import CallFacts
from flightsvc.logs import fields
from flightsvc.logs.stack import stack_of
from flightsvc.tracing import TraceContext

#: set its level above INFO to have no request lines
requests = logging.getLogger("flightsvc.request")
failures = logging.getLogger("flightsvc.failure")
alerts = logging.getLogger("flightsvc.alert")

_REQUEST = "%s %s %d in %.1f ms%s"
_FAILURE = "failed after %.1f ms%s"
#: what a text line shows of the golden fields
_SHOWN = ("role", "code", "fallback_action", "session_id", "flight_id", "trace_id")


@dataclass(frozen=True, slots=True)
class Told:
    """What a client was told of a flight, or a failure's own flight.

    :param fence: None: nobody said.
    """

    flight_id: str = ""
    fence: int | None = None
    role: str = ""


def log_request(
    *,
    trace: TraceContext,
    facts: CallFacts,
    told: Told,
    method: str,
    route: str,
    status: int,
    duration_s: float,
    code: str = "",
    fallback_action: str = "",
) -> None:
    """One line for one request that was answered.

    :param facts: of the call that this request began, whether or not it was made.
    :param told: the flight that answered, as its headers say.
    :param route: the route's name; no path, for that holds what clients write.
    :param duration_s: from the first look at the request to the answer's head, or to the end of
        one that is streamed, in s.
    :param code: what the client was told went wrong; empty: nothing did.
    :param fallback_action: what stood in for an answer, as the client was told.
    """
    level = logging.ERROR if status == 500 else logging.WARNING if status > 500 else logging.INFO
    if not requests.isEnabledFor(level):
        return
    golden = _golden(facts, told)
    golden["trace_id"] = trace.trace_id
    golden["code"] = fields.code(code)
    golden["fallback_action"] = fields.code(fallback_action) or golden["fallback_action"]
    line: dict[str, object] = {
        "event": fields.REQUEST,
        "span_id": trace.span_id,
        "method": fields.code(method),
        "route": route,
        "status": status,
        "duration_ms": round(duration_s * 1000, 1),
        **golden,
    }
    shown = _Shown(golden)
    args = (line["method"], route, status, duration_s * 1000, shown)
    # as Logger.log, but that nobody looks for the line of code that logs: it is always this one
    requests.handle(
        requests.makeRecord(requests.name, level, __file__, 0, _REQUEST, args, None, extra=line)
    )


def log_failure(
    facts: CallFacts,
    told: Told,
    error: BaseException,
    *,
    duration_s: float,
    foreseen: bool,
    content: bool = False,
) -> None:
    """One line for one failure, by the worker that it happened in.

    :param facts: of the call; its trace and session are those of the call's first caller.
    :param told: its flight, where there is one.
    :param error: what was raised.
    :param duration_s: how long it took to fail, in s.
    :param foreseen: a failure with a name; others are logged with their stack.
    :param content: whether messages of other errors than this package's own are logged; they
        may quote a prompt or an answer.
    """
    behind = error.failure if isinstance(error, FallbackAnswer) else error
    golden = _golden(facts, told)
    line: dict[str, object] = {
        "event": fields.FAILURE,
        "duration_ms": round(duration_s * 1000, 1),
        **golden,
    }
    line["detail"] = _detail(behind, content=content)
    shown = str(_Shown(golden))
    if not foreseen:
        line["stack"] = stack_of(behind, content=content)
        shown += f"\n{line['stack']}"
    level = logging.WARNING if foreseen else logging.ERROR
    failures.log(level, _FAILURE, duration_s * 1000, shown, extra=line)


def log_alert(message: str, **line: object) -> None:
    """One line for one alert, by the worker that sends it.

    :param message: what a person reads.
    :param line: the fields of the event ``alert``.
    """
    alerts.error("%s", message, extra={"event": fields.ALERT, **line})


def _detail(error: BaseException, *, content: bool) -> str | None:
    """An error's message, if it may be logged, and what the model's own answer was marked with."""
    if not isinstance(error, FlightSvcError) and not content:
        return None
    marks = (getattr(error, "upstream_status", None), getattr(error, "upstream_code", None))
    known = " ".join(str(mark) for mark in marks if mark is not None)
    return fields.text(f"{error} [{known}]" if known else str(error), fields.MESSAGE_LENGTH)


def _golden(facts: CallFacts, told: Told) -> dict[str, object]:
    """What both kinds of line have in common; null where nothing is known."""
    return {
        "trace_id": fields.code(facts.trace_id),
        "session_id": fields.session(facts.session_id),
        "tenant": fields.text(facts.tenant),
        "stage": fields.code(facts.stage),
        "input_hash": fields.code(facts.input_hash),
        "input_length": facts.input_length,
        "retry_count": facts.retry_count,
        "fallback_action": fields.code(facts.fallback_action),
        "code": fields.code(facts.code),
        "fingerprint": fields.code(facts.fingerprint),
        "warnings": [fields.code(warning) for warning in facts.warnings[:8]],
        "flight_id": fields.code(told.flight_id),
        "fence": told.fence,
        "role": fields.code(told.role),
    }


class _Shown:
    """The golden fields for a text line; made only if one is written."""

    __slots__ = ("_golden",)

    def __init__(self, golden: dict[str, object]) -> None:
        self._golden = golden

    def __str__(self) -> str:
        given = ((name, self._golden[name]) for name in _SHOWN)
        return "".join(f" {name}={value}" for name, value in given if value is not None)
