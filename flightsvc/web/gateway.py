"""`POST /v1/chat/completions` and `GET /v1/models`, as OpenAI's clients know them."""

from __future__ import annotations

import re
import time

from flask import Blueprint, Response, request

from flightsvc.errors import FlightSvcError
from flightsvc.gateway.caller import ChatCaller
from flightsvc.gateway.chat import Chat, InvalidChat, Sharing
from flightsvc.web.asking import asking, asking_tenant
from flightsvc.web.body import read_any_json
from flightsvc.web.client_gone import LOOK_S, ClientWatch
from flightsvc.web.event_stream import EventStream, Pace
from flightsvc.web.extension import Extension
from flightsvc.web.language import language
from flightsvc.web.openai_errors import to_openai
from flightsvc.web.openapi_chat import CHAT, MODELS
from flightsvc.web.openapi_terms import EVENTS, JSON
from flightsvc.web.render import render_json
from flightsvc.web.routes import add_route

_NAME = re.compile(r"[!-~]{1,256}")


class ClientGone(FlightSvcError):
    """The client closed the connection before its answer."""

    default_code = "CLIENT_GONE"
    status = 499  # nobody reads it; it stands in the log
    retryable = False


def gateway_blueprint(name: str = "gateway") -> Blueprint:
    """The OpenAI door, below any prefix.

    :param name: of the blueprint; another one for a second mount in the same app.
    """
    blueprint = Blueprint(name, __name__)
    chats, models = "/v1/chat/completions", "/v1/models"
    asks, lists = {"POST": CHAT}, {"GET": MODELS}
    add_route(
        blueprint, chats, "chat_completions", complete, "POST", errors=to_openai, operations=asks
    )
    add_route(
        blueprint, models, "models", list_models, "GET", errors=to_openai, operations=lists
    )
    return blueprint


def complete(service: Extension) -> Response:
    """Answer one chat, in chunks or whole."""
    caller = _begin(service)
    watch = ClientWatch(request.environ)
    try:
        if caller.wants_chunks:
            return _streamed(service, caller, watch)
        return _whole(service, caller, watch)
    except BaseException:
        caller.close()
        raise


def _begin(service: Extension) -> ChatCaller:
    """Read the request and ask. Nothing here keeps the body, which may be large."""
    tenant, sharing, settings = asking_tenant(service), read_sharing(), service.settings
    limit, timeout_s = settings.gateway_max_body_bytes, settings.body_timeout_ms / 1000
    chat = Chat.read(read_any_json(request, limit, timeout_s))
    mine = asking()
    return service.gateway.ask(chat, sharing, tenant=tenant, trace=mine.trace, facts=mine.facts)


def list_models(service: Extension) -> Response:
    """The models that can be asked for."""
    asking_tenant(service)
    models = [dict(each) for each in service.gateway.models()]
    return render_json({"object": "list", "data": models})


def read_sharing() -> Sharing:
    """What the request's headers say of sharing.

    :raises InvalidChat: something else than there is.
    """
    name = request.headers.get("Flight-Key")
    if name is not None and not _NAME.fullmatch(name):
        raise InvalidChat("Flight-Key: use 1 to 256 printable ASCII characters, without spaces.")
    mode = _word("Flight-Mode", "bypass")
    replay = _word("Flight-Replay", "none")
    return Sharing(name or "", bypass=bool(mode), replay=not replay)


def _word(header: str, only: str) -> str:
    value = request.headers.get(header, "").strip().lower()
    if value not in ("", only):
        raise InvalidChat(f"{header}: the only value is `{only}`.")
    return value


def _whole(service: Extension, caller: ChatCaller, watch: ClientWatch) -> Response:
    """Wait for the whole answer; a client that leaves is noticed while it waits."""
    with caller:
        while True:
            body = caller.answer(LOOK_S)
            if body is not None:
                return Response(body, 200, _headers(service, caller), content_type=JSON)
            if watch.gone():
                raise ClientGone


def _streamed(service: Extension, caller: ChatCaller, watch: ClientWatch) -> Response:
    """Wait for the first byte, as until then a failure can be told by its status."""
    settings = service.settings
    limit = time.monotonic() + settings.gateway_head_after_ms / 1000
    first = None
    while first is None and (left_s := limit - time.monotonic()) > 0:
        first = caller.next(min(LOOK_S, left_s))
        if first is None and watch.gone():
            raise ClientGone
        if first is not None and not first.chunks and not first.last:
            first = None
    pace = Pace(settings.gateway_keep_alive_ms / 1000, settings.gateway_send_timeout_ms / 1000)
    events = EventStream(
        service,
        caller,
        first,
        asking(),
        pace=pace,
        environ=request.environ,
        language=language(),
    )
    response = Response(events, 200, _headers(service, caller), content_type=EVENTS)
    response.headers["Cache-Control"] = "no-cache, no-transform"
    response.headers["X-Accel-Buffering"] = "no"
    # a host's own compression would wait for more before it lets anything go
    response.headers["Content-Encoding"] = "identity"
    return response


def _headers(service: Extension, caller: ChatCaller) -> dict[str, str]:
    """How the answer came about, as far as it is known."""
    headers = {"Flight-Id": caller.flight_id}
    if caller.role:
        headers |= {"Flight-Role": caller.role, "Flight-Fence": str(caller.fence)}
    if service.gateway.simulated:
        headers["Flight-Simulated"] = "true"
    return headers
