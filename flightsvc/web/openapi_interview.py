"""What the interview's routes say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

from pydantic import BaseModel

from flightsvc.errors import (
    CoordinationUnavailable,
    EncryptedFile,
    NoText,
    RecordsError,
    SessionBusy,
    UnreadableFile,
    UnsupportedFile,
)
from flightsvc.interview import demeanor, evaluation, extraction, follow_up
from flightsvc.web.openapi_shapes import (
    Guidance,
    Problem,
    SessionShown,
    Step,
    UnderWay,
    arrival,
    marked,
    replacement,
)
from flightsvc.web.openapi_terms import (
    HTML,
    TENANT,
    Answer,
    Form,
    JsonBody,
    Operation,
    Shape,
    json_of,
)
from flightsvc.web.openapi_words import LANGUAGE, PREFER, PROGRESS

_HOW = "The same question again is answered by the same call: `Flight-Role` says how."
_LATER_HEADERS = ("Flight-Id", "Location", "Retry-After")
_ANSWER_HEADERS = ("Flight-Role", "Flight-Fence", "Flight-Simulated")
_OF_A_STAND_IN = ("Flight-Fallback", "Content-Language")
_ANSWERED = "The answer, or what stands in for it: then `fallback` says what it is."
_FILE = (UnsupportedFile, UnreadableFile, EncryptedFile)


class _Stage(NamedTuple):
    """One stage as the document tells of it.

    :param asks: what it asks the model for, in a few words.
    :param heavy: what can be wrong with its file, and with the session that it locks.
    """

    asks: str
    answer: type[BaseModel]
    body: JsonBody | Form
    heavy: tuple[Any, ...] = ()


_STAGES: Mapping[ModuleType, _Stage] = {
    evaluation: _Stage(
        "Judge an answer",
        evaluation.EvaluationAnswer,
        JsonBody(
            evaluation.EvaluationInput,
            {
                "question_number": 3,
                "question": "What does a database index cost?",
                "answer": "Space, and every write has to keep it in order.",
            },
        ),
    ),
    follow_up: _Stage(
        "Decide on a further question",
        follow_up.FollowUpAnswer,
        JsonBody(
            follow_up.FollowUpInput,
            {
                "current_question": "What does a database index cost?",
                "answer": "Space, and every write has to keep it in order.",
                "follow_up_count": 0,
                "max_follow_up": 2,
            },
        ),
    ),
    extraction: _Stage(
        "Make questions from a résumé",
        extraction.ExtractionAnswer,
        Form("A PDF with text.", ("application/pdf",), extraction.ExtractionForm),
        (*_FILE, NoText, SessionBusy),
    ),
    demeanor: _Stage(
        "Judge a picture",
        demeanor.DemeanorAnswer,
        Form("A JPEG, PNG or WebP.", ("image/jpeg", "image/png", "image/webp")),
        (*_FILE, SessionBusy),
    ),
}


def asking_operation(stage: object, later: str) -> Operation:
    """A question to the model.

    :param stage: the module of a stage.
    :param later: name of the route where its answer is fetched later.
    """
    it = _of(stage)
    leads_to = (f".{later}", ".session", "flights.flight")
    events: dict[str, type[BaseModel]] = {
        **dict.fromkeys(("received", "locked", "waiting", "running"), Step),
        "stored": arrival(it.answer),
        "fallback": replacement(it.answer),
        "error": Problem,
    }
    answered = Answer(
        200,
        _ANSWERED,
        _shapes(it),
        headers=("Flight-Id",),
        maybe=(*_ANSWER_HEADERS, *_OF_A_STAND_IN),
        events=events,
        leads_to=leads_to,
    )
    not_yet = Answer(
        202,
        "Not there yet: `Location` says where it will be.",
        json_of(UnderWay),
        headers=(*_LATER_HEADERS, "Preference-Applied"),
        leads_to=leads_to,
    )
    return Operation(
        summary=it.asks,
        says=_HOW,
        tag="Interview",
        who=TENANT,
        parameters=(PROGRESS, PREFER, LANGUAGE),
        body=it.body,
        answers=(answered, not_yet),
        problems=it.heavy,
        asks="model",
    )


def fetching_operation(stage: object) -> Operation:
    """An answer that was asked for with ``Prefer: respond-async``."""
    it = _of(stage)
    return Operation(
        summary=f"{it.asks}: the answer, later",
        says="As it is kept; for a question that failed what stood in, or its problem.",
        tag="Interview",
        who=TENANT,
        parameters=(LANGUAGE,),
        answers=(
            Answer(
                200,
                _ANSWERED,
                _shapes(it),
                headers=("Flight-Id", "Flight-Role", "Flight-Fence"),
                maybe=("Flight-Simulated", *_OF_A_STAND_IN),
            ),
            Answer(202, "Not there yet", json_of(UnderWay), headers=_LATER_HEADERS),
        ),
        problems=(*it.heavy, RecordsError),
        asks="model",
    )


def _shapes(it: _Stage) -> Mapping[str, Shape]:
    """An answer, and all that can stand in for one."""
    return json_of((it.answer, marked(it.answer), Guidance))


def _of(stage: object) -> _Stage:
    assert isinstance(stage, ModuleType)
    return _STAGES[stage]


SESSION = Operation(
    summary="Everything of an interview",
    tag="Sessions",
    who=TENANT,
    answers=(Answer(200, "What is kept of it", json_of(SessionShown)),),
    problems=(RecordsError,),
)
FORGET = Operation(
    summary="Forget an interview",
    says="Rows, files, stored answers, and what the workers remember of them.",
    tag="Sessions",
    who=TENANT,
    answers=(Answer(204, "It is forgotten, or there was nothing"),),
    problems=(RecordsError, CoordinationUnavailable),
)
REPORT = Operation(
    summary="An interview as a page",
    says="For a screen and for paper.",
    tag="Sessions",
    who=TENANT,
    parameters=(LANGUAGE,),
    answers=(
        Answer(
            200,
            "The page",
            {HTML: {"type": "string"}},
            headers=("Content-Language", "Content-Security-Policy"),
        ),
    ),
    problems=(RecordsError,),
)
