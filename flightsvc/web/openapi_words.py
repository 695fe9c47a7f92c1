"""What ``/openapi.json`` says of what many routes have: headers, parts of addresses, tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from flightsvc.flight.state import Role
from flightsvc.web.addresses import FLIGHT_ID, SESSION_ID
from flightsvc.web.openapi_terms import Parameter
from flightsvc.web.problem import RETRY_LATEST, RETRY_SOONEST

TITLE = "flightsvc"
ABOUT = """\
One model call per question, however many ask it at the same time.

- Errors are problem details (RFC 9457) with a `code`; those of chats are as OpenAI has them. 4xx is
  the caller's fault; 503 and 504 are the service's, pass by themselves, and say in `Retry-After`
  when to come back.
- Each `GET` answers `HEAD` too. `OPTIONS` names the methods of an address in `Allow`; another
  method is answered with 405 `METHOD_NOT_ALLOWED`.
- What users read (`message`) is English or Chinese, as `Accept-Language` asks.
- A `traceparent` (W3C Trace Context) is taken up, and named in the answer.
"""

TAGS: Mapping[str, str] = {
    "Interview": "Questions to the model. The same question is one call, and replays.",
    "Sessions": "What is kept of an interview.",
    "Chats": "OpenAI's protocol. Equal chats are one call, streamed to all who ask, and replay.",
    "Flights": "How a call stands.",
    "Status": "For operators: what happens now, on all workers.",
    "Modules": "For operators: stages and providers can be paused.",
    "Service": "Probes and this document.",
}

TOKEN, OPERATOR_TOKEN = "token", "operatorToken"
#: security scheme → what it is
TOKENS: Mapping[str, str] = {
    TOKEN: "A token of FLIGHTSVC_API_TOKENS; it stands for a tenant, and tenants share nothing.",
    OPERATOR_TOKEN: "A token of FLIGHTSVC_OPERATOR_TOKENS.",
}


class Header(NamedTuple):
    """A header of an answer."""

    says: str
    schema: Mapping[str, Any]


def _text(**rest: Any) -> dict[str, Any]:
    return {"type": "string", **rest}


def _number(**rest: Any) -> dict[str, Any]:
    return {"type": "integer", **rest}


HEADERS: Mapping[str, Header] = {
    "Flight-Id": Header("The flight behind the answer.", _text(pattern=f"^{FLIGHT_ID.pattern}$")),
    "Flight-Role": Header(
        "What this caller was to it: `owner` (made the call), `follower` (waited for it), "
        "`replay` and `l1` (it was answered before), `local` (without Redis).",
        _text(enum=[role.value for role in Role]),
    ),
    "Flight-Fence": Header("Number of its ownership; 0: without Redis.", _number(minimum=0)),
    "Flight-Fallback": Header("Which stand-in the answer is; missing: none.", _text()),
    "Flight-Simulated": Header(
        "`true`: no model was asked, the answer is made up.", _text(enum=["true"])
    ),
    "x-should-retry": Header(
        "Whether OpenAI's SDKs are to ask again by themselves.", _text(enum=["true", "false"])
    ),
    "Retry-After": Header(
        "When to come back, in s.", _number(minimum=RETRY_SOONEST, maximum=RETRY_LATEST)
    ),
    "Location": Header("Where the answer will be.", _text()),
    "Preference-Applied": Header("`respond-async`: as asked for.", _text(enum=["respond-async"])),
    "WWW-Authenticate": Header("How to sign in.", _text()),
    "Content-Language": Header("Language of `message`, or of the page.", _text(enum=["en", "zh"])),
    "Content-Security-Policy": Header("What the page may do: nothing but look.", _text()),
    "Set-Cookie": Header("Signs the browser in, or out.", _text()),
}

#: parts of addresses; others are texts
PATH: Mapping[str, Parameter] = {
    "session_id": Parameter(
        "session_id",
        "path",
        "The interview.",
        _text(pattern=f"^{SESSION_ID.pattern}$"),
        example="demo",
    ),
    "flight_id": Parameter(
        "flight_id",
        "path",
        "The flight, as `Flight-Id` names it.",
        _text(pattern=f"^{FLIGHT_ID.pattern}$"),
    ),
    "module": Parameter(
        "module",
        "path",
        "Its name, or the part after the colon where that says enough.",
        example="stage:evaluation",
    ),
}

LANGUAGE = Parameter(
    "Accept-Language", "header", "In which language users are spoken to: `en` or `zh`.",
    example="zh",
)  # fmt: skip
PREFER = Parameter(
    "Prefer",
    "header",
    "`respond-async` (RFC 7240): who would have to wait is told at once where the answer will be. "
    "With `wait=10` that is after 10 s; the longest is 60.",
    example="respond-async, wait=1",
)
PROGRESS = Parameter(
    "progress",
    "query",
    "Anything but empty and `0`: answer step by step as server-sent events, and whatever goes "
    "wrong then is an event too.",
    example="1",
)
