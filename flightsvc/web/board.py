"""`/flights`: how things stand now on all workers, for operators. It shows, and changes nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

from flask import Blueprint, Response, current_app, request

from flightsvc.errors import Unauthenticated
from flightsvc.settings import Settings
from flightsvc.web.board_lookout import Lookout, most_pages
from flightsvc.web.board_operations import LINE, PAGE, SIGN_IN, SIGN_OUT, STATE
from flightsvc.web.board_page import (
    CONTENT_SECURITY_POLICY,
    render_fragment,
    render_page,
    render_sign_in,
)
from flightsvc.web.board_shapes import BoardShown, TokenField
from flightsvc.web.board_sign_in import SignIns, from_own_page
from flightsvc.web.board_view import gather, shown
from flightsvc.web.body import check_fields, read_fields
from flightsvc.web.extension import Extension
from flightsvc.web.openapi_terms import HTML, JSON
from flightsvc.web.render import event, render_events
from flightsvc.web.routes import add_route

log = logging.getLogger("flightsvc.web")

#: silence on a line, in s, after which a comment says that it is alive
KEEP_ALIVE_S = 10.0
#: time in ms after which a browser asks again whose line broke
RETRY_MS = 1_000
#: longest time, in s, that one line lasts: its browser has to be signed in then as well
LINE_S = 600.0
#: time in s within which a line notices that its worker stops
NOTICE_S = 0.5

_BOARD = "flightsvc.board"


def board_blueprint(name: str = "board") -> Blueprint:
    """The status page, below any prefix; without OPERATOR_TOKENS each address answers 404.

    :param name: of the blueprint; another one for a second mount in the same app.
    """
    blueprint = Blueprint(name, __name__)
    page = {"GET": PAGE, "POST": SIGN_IN}
    add_route(blueprint, "/flights", "board", _page, *page, operations=page)
    out = {"POST": SIGN_OUT}
    add_route(blueprint, "/flights/sign-out", "board_sign_out", _sign_out, *out, operations=out)
    line, state = {"GET": LINE}, {"GET": STATE}
    add_route(blueprint, "/flights/events", "board_events", _events, "GET", operations=line)
    add_route(blueprint, "/flights/state", "board_state", _state, "GET", operations=state)
    return blueprint


class Board:
    """What all requests for one app's page share in a process."""

    def __init__(self, service: Extension) -> None:
        self._settings = service.settings
        self.sign_ins = SignIns(service.settings)
        self.lookout = Lookout(lambda: gather(service), most_pages(service.settings))
        self._drawn: dict[bool, tuple[BoardShown, str]] = {}

    def belongs_to(self, settings: Settings) -> bool:
        """Whether it was made by these settings."""
        return self._settings is settings

    def fragment(self, seen: BoardShown, *, newest: bool) -> str:
        """What was seen as HTML; drawn once for all who look."""
        drawn = self._drawn.get(newest)
        if drawn is None or drawn[0] is not seen:
            late_ms = 2 * self._settings.heartbeat_ms
            dead_ms = self._settings.takeover_detect_ms
            part = shown(seen, newest=newest)
            html = render_fragment(part, late_ms=late_ms, dead_ms=dead_ms)
            drawn = self._drawn[newest] = (seen, html)
        return drawn[1]


def _board(service: Extension) -> Board:
    found: Board | None = current_app.extensions.get(_BOARD)
    if found is None or not found.belongs_to(service.settings):
        found = current_app.extensions[_BOARD] = Board(service)
    return found


def _operator(service: Extension, board: Board) -> str:
    """The operator that asks: by a token, else by the cookie.

    :raises Unauthenticated, Forbidden, NotFound: see ``Authenticator.operator``.
    """
    if "Authorization" not in request.headers:
        name = board.sign_ins.operator(request)
        if name is not None:
            return name
    return service.authenticator.operator(request)


def _page(service: Extension) -> Response:
    return _sign_in(service) if request.method == "POST" else _show(service)


def _show(service: Extension) -> Response:
    board = _board(service)
    try:
        operator = _operator(service, board)
    except Unauthenticated:
        return _form(wrong="Authorization" in request.headers)
    seen, newest = board.lookout.now(), _newest()
    fragment = board.fragment(seen, newest=newest)
    page = render_page(fragment, operator=operator, newest=newest, version=seen.version)
    return _html(page, 200)


def _sign_in(service: Extension) -> Response:
    from_own_page(request)
    form = check_fields(read_fields(request, service.settings), TokenField)
    operator = service.authenticator.operator_of(form.token)
    if operator is None:
        return _form(wrong=True)
    log.info("operator %s has signed in", operator)
    response = _go_to("flights")
    _board(service).sign_ins.sign_in(
        response, operator, path=_cookie_path(""), secure=request.is_secure
    )
    return response


def _sign_out(service: Extension) -> Response:
    from_own_page(request)
    service.authenticator.operator_of("")  # without operators there is nothing here
    response = _go_to("../flights")
    _board(service).sign_ins.sign_out(
        response, path=_cookie_path("/sign-out"), secure=request.is_secure
    )
    return response


def _state(service: Extension) -> Response:
    board = _board(service)
    _operator(service, board)
    seen = shown(board.lookout.now(), newest=_newest())
    headers = {"Cache-Control": "no-store"}
    return Response(seen.model_dump_json(), 200, headers, content_type=JSON)


def _events(service: Extension) -> Response:
    board = _board(service)
    _operator(service, board)
    if request.method == "HEAD":
        return render_events(())
    board.lookout.enter()
    response = render_events(_line(service, board, newest=_newest()))
    response.call_on_close(board.lookout.leave)
    return response


def _line(service: Extension, board: Board, *, newest: bool) -> Iterator[bytes]:
    """One page's events, until its worker stops."""
    yield b"retry: %d\n\n" % RETRY_MS
    seen: BoardShown | None = None
    said_at = time.monotonic()
    until = said_at + LINE_S
    while not service.draining and time.monotonic() < until:
        found = board.lookout.next(seen, NOTICE_S)
        if found is not None:
            seen, said_at = found, time.monotonic()
            yield event("board", {"html": board.fragment(found, newest=newest)})
        elif time.monotonic() - said_at > KEEP_ALIVE_S:
            said_at = time.monotonic()
            yield b": nothing new\n\n"


def _newest() -> bool:
    return request.args.get("sort") == "newest"


def _cookie_path(below: str) -> str:
    """The page's own address, with whatever prefix it has."""
    return (request.script_root + request.path).removesuffix(below)


def _go_to(where: str) -> Response:
    """To an address beside this one: a prefix that only a proxy knows does no harm."""
    return Response(status=303, headers={"Location": where, "Cache-Control": "no-store"})


def _form(*, wrong: bool) -> Response:
    response = _html(render_sign_in(wrong=wrong), 401)
    response.headers["WWW-Authenticate"] = 'Bearer realm="flightsvc"'
    return response


def _html(page: str, status: int) -> Response:
    headers = {
        "Cache-Control": "no-store",
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(page, status, headers, content_type=f"{HTML}; charset=utf-8")
