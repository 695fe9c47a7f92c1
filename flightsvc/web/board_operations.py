"""What the status page's routes say of themselves."""

from __future__ import annotations

from flightsvc.errors import NotFound, TooManyWaiters
from flightsvc.web.board_shapes import BoardEvent, BoardShown, TokenField
from flightsvc.web.openapi_errors import FORBIDDEN
from flightsvc.web.openapi_terms import (
    HTML,
    OPERATOR,
    Answer,
    Fields,
    Operation,
    Parameter,
    json_of,
)

SORT = Parameter(
    "sort", "query", "`newest`: the youngest flight first; else the oldest.", example="newest"
)
_PAGE = {HTML: {"type": "string"}}
_COOKIE = "A browser that signed in by the form is known by a cookie, which does as well."
PAGE = Operation(
    summary="The status page",
    says=f"It updates itself. {_COOKIE}",
    tag="Status",
    who=OPERATOR,
    parameters=(SORT,),
    answers=(
        Answer(200, "The page", _PAGE, headers=("Content-Security-Policy",)),
        Answer(401, "A form to sign in", _PAGE, headers=("Content-Security-Policy",)),
    ),
    problems=(NotFound,),
)
SIGN_IN = Operation(
    summary="Sign a browser in",
    says="For 12 hours, or until the operators' tokens change.",
    tag="Status",
    body=Fields(TokenField),
    answers=(
        Answer(303, "To the page", headers=("Location", "Set-Cookie")),
        Answer(401, "The form again", _PAGE, headers=("Content-Security-Policy",)),
    ),
    problems=(NotFound, FORBIDDEN),
)
SIGN_OUT = Operation(
    summary="Sign a browser out",
    tag="Status",
    answers=(Answer(303, "To the form", headers=("Location", "Set-Cookie")),),
    problems=(NotFound, FORBIDDEN),
)
LINE = Operation(
    summary="The page's changing part, about once a second",
    says=f"Until the worker stops, for ten minutes at most. {_COOKIE}",
    tag="Status",
    who=OPERATOR,
    parameters=(SORT,),
    answers=(Answer(200, "Server-sent events", events={"board": BoardEvent}),),
    problems=(NotFound, TooManyWaiters),
)
STATE = Operation(
    summary="The same for programs",
    says=_COOKIE,
    tag="Status",
    who=OPERATOR,
    parameters=(SORT,),
    answers=(Answer(200, "How things stand", json_of(BoardShown)),),
    problems=(NotFound,),
)
