"""The status page as HTML; it loads nothing from elsewhere."""

from __future__ import annotations

from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from flightsvc.web.board_shapes import BoardShown, LiveFlightShown

#: time in s after which a browser without JavaScript asks again
REFRESH_S = 5


def _text(name: str) -> str:
    return files("flightsvc.web").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "'sha256-" + b64encode(sha256(text.encode()).digest()).decode() + "'"


_STYLE, _SCRIPT = _text("board.css"), _text("board.js")

#: for the page's responses
CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; "
    f"connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
    f"frame-ancestors 'none'"
)


def render_fragment(board: BoardShown, *, late_ms: int, dead_ms: int) -> str:
    """The part that changes.

    :param late_ms: silence of an owner from which it is marked.
    :param dead_ms: silence from which it counts as dead.
    """
    return _template("board_now.jinja").render(
        board=board,
        flights=board.live.flights,
        beat=lambda flight: _beat(flight, late_ms, dead_ms),
        time=time_of,
        number="{:,}".format,
    )


def render_page(fragment: str, *, operator: str, newest: bool, version: str) -> str:
    """The whole page."""
    return _template("board.jinja").render(
        style=Markup(_STYLE),
        script=Markup(_SCRIPT),
        fragment=Markup(fragment),
        operator=operator,
        newest=newest,
        version=version,
        refresh_s=REFRESH_S,
    )


def render_sign_in(*, wrong: bool) -> str:
    """The form.

    :param wrong: whether the token that was sent is nobody's.
    """
    return _template("board_sign_in.jinja").render(style=Markup(_STYLE), wrong=wrong)


def time_of(ms: int) -> str:
    """A duration in as few characters as say enough."""
    seconds = ms / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 100:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _beat(flight: LiveFlightShown, late_ms: int, dead_ms: int) -> str:
    if flight.silent_ms is None or flight.silent_ms < late_ms:
        return ""
    return "late" if flight.silent_ms < dead_ms else "dead"


@lru_cache(maxsize=4)
def _template(name: str) -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_text(name))
