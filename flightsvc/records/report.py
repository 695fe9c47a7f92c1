"""A session as one HTML page that needs nothing else, and as JSON.

The page is made of what candidates and models wrote, so nothing in it is taken for markup, and
nothing is expected to have the shape that it should have: what does not is left out.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from flightsvc.records.report_values import Score, as_score, as_text, as_texts, isolated, natural
from flightsvc.records.report_words import words
from flightsvc.records.rows import SessionRecords, StoredRecord

#: questions in one drawing: paper can break between two of them only
CHART_ROWS = 5
#: the levels of a picture, in the order of the page
LEVELS = ("composite_score", "seriousness_level", "emoticon_handling", "panic_level")
#: the one whose high values are bad
INVERSE = "panic_level"

_STYLE = files("flightsvc.records").joinpath("report.css").read_text(encoding="utf-8")
_STYLE_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()

#: for the page's response: nothing in it runs, and nothing is loaded
CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
    f"frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True)
class Judged:
    """One evaluated answer.

    :param is_latest: whether no later answer to the same question is kept.
    """

    number: str
    question: str
    answer: str
    score: Score | None
    feedback: str
    missing: tuple[str, ...]
    logic_ok: bool | None
    follow_up: str
    simulated: bool
    is_latest: bool


def render_report(session: SessionRecords, language: str) -> str:
    """The page of a session; what it may do says :data:`CONTENT_SECURITY_POLICY`.

    :param language: ``zh…`` for Chinese; anything else is English.
    """
    judged = _judged(session.of("evaluation"))
    latest = [each for each in judged if each.is_latest]
    page = _template().render(
        w=words(language),
        style=_STYLE,
        session_id=session.session_id,
        as_of=max((_time(record.written_ms) for record in session.records), default=""),
        is_empty=not session,
        simulated=any(record.value.get("simulated") is True for record in session.records),
        tiles=_tiles(session, latest),
        judged=judged,
        charts=[latest[n : n + CHART_ROWS] for n in range(0, len(latest), CHART_ROWS)],
        question_sets=[_question_set(r) for r in reversed(session.of("question_set"))],
        follow_ups=[_follow_up(record) for record in session.of("follow_up")],
        pictures=[_picture(record) for record in session.of("demeanor")],
    )
    return page.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair cannot be sent


def as_json(session: SessionRecords) -> dict[str, Any]:
    """Everything of a session, the oldest first."""
    return {
        "session_id": session.session_id,
        "question_sets": [_row(record) for record in session.of("question_set")],
        "evaluations": [_row(record) for record in session.of("evaluation")],
        "follow_ups": [_row(record) for record in session.of("follow_up")],
        "demeanor": [_row(record) for record in session.of("demeanor")],
    }


def _row(record: StoredRecord) -> dict[str, Any]:
    return {
        "key": record.business_key,
        "flight_id": record.flight_id,
        "fence": record.fence,
        "file_digest": record.file_digest,
        "created_at": _iso(record.created_ms),
        "written_at": _iso(record.written_ms),
        "asked": dict(record.asked),
        "answer": dict(record.value),
    }


@lru_cache(maxsize=1)
def _template() -> Template:
    source = files("flightsvc.records").joinpath("report.jinja").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["isolated"] = isolated
    return environment.from_string(source)


def _tiles(session: SessionRecords, latest: list[Judged]) -> dict[str, Score | str]:
    """What stands at the top: the name of each number, and the number."""
    scores = [_number(record) for record in _latest_of_each(session.of("evaluation"))]
    known = [score for score in scores if score is not None]
    tiles: dict[str, Score | str | None] = {
        "average": as_score(sum(known) / len(known)) if known else None,
        "answered": str(len(latest)) if latest else None,
        "resume_score": _newest(session.of("question_set"), "resume_score"),
        "demeanor_score": _newest(session.of("demeanor"), "composite_score"),
    }
    return {name: value for name, value in tiles.items() if value is not None}


def _newest(records: Iterable[StoredRecord], name: str) -> Score | None:
    newest = max(records, key=lambda record: record.written_ms, default=None)
    return as_score(newest.value.get(name)) if newest is not None else None


def _number(record: StoredRecord) -> float | None:
    score = as_score(record.value.get("score"))
    return float(score.share) if score is not None else None


def _latest_of_each(records: Iterable[StoredRecord]) -> list[StoredRecord]:
    """The latest answer to each question."""
    latest: dict[str, StoredRecord] = {}
    for record in sorted(records, key=lambda record: record.written_ms):
        latest[_question_number(record)] = record
    return list(latest.values())


def _judged(records: tuple[StoredRecord, ...]) -> list[Judged]:
    """Question by question; of one question the latest answer first."""
    latest = {id(record) for record in _latest_of_each(records)}

    def order(record: StoredRecord) -> tuple[object, ...]:
        number = natural(_question_number(record))
        return number, id(record) not in latest, -record.written_ms

    return [_judgement(r, is_latest=id(r) in latest) for r in sorted(records, key=order)]


def _judgement(record: StoredRecord, *, is_latest: bool) -> Judged:
    value, asked = record.value, record.asked
    logic_ok = value.get("logic_ok")
    return Judged(
        number=_question_number(record),
        question=as_text(asked.get("question")),
        answer=as_text(asked.get("answer")),
        score=as_score(value.get("score")),
        feedback=as_text(value.get("feedback")),
        missing=as_texts(value.get("missing_points")),
        logic_ok=logic_ok if isinstance(logic_ok, bool) else None,
        follow_up=as_text(value.get("follow_up_question")),
        simulated=value.get("simulated") is True,
        is_latest=is_latest,
    )


def _question_number(record: StoredRecord) -> str:
    number = record.asked.get("question_number", "")
    return str(number) if isinstance(number, (int, str)) else ""


def _question_set(record: StoredRecord) -> dict[str, Any]:
    value = record.value
    return {
        "questions": as_texts(value.get("questions")),
        "suggestions": as_texts(value.get("suggestions")),
        "score": as_score(value.get("resume_score")),
        "interview_type": as_text(value.get("interview_type")),
        "position": as_text(record.asked.get("position")),
        "file": as_text(record.asked.get("file_name")),
        "simulated": value.get("simulated") is True,
    }


def _follow_up(record: StoredRecord) -> dict[str, Any]:
    value, asked = record.value, record.asked
    return {
        "asked": as_text(asked.get("current_question")),
        "answer": as_text(asked.get("answer")),
        "question": as_text(value.get("question")) if value.get("needed") is True else "",
        "reason": as_text(value.get("reason")),
        "simulated": value.get("simulated") is True,
    }


def _picture(record: StoredRecord) -> dict[str, Any]:
    levels = {name: as_score(record.value.get(name), inverse=name == INVERSE) for name in LEVELS}
    return {
        "levels": {name: level for name, level in levels.items() if level is not None},
        "simulated": record.value.get("simulated") is True,
    }


def _time(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _iso(unix_ms: int) -> str:
    moment = datetime.fromtimestamp(unix_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

