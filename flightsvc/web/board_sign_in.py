"""Operators' browsers: signed in by a form, then known by a cookie that is no token."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from urllib.parse import urlsplit

from flask import Request, Response
from itsdangerous import BadData, URLSafeTimedSerializer
from werkzeug.exceptions import Forbidden

from flightsvc.settings import Settings

COOKIE = "flightsvc_operator"
#: how long a browser stays signed in, in s
LASTS_S = 12 * 3600

_SALT = "flightsvc status page"
#: cost of guessing a token from a cookie: 16 MiB and about 50 ms a guess
_SCRYPT = {"n": 2**14, "r": 8, "p": 1, "dklen": 32}


class SignIns:
    """Makes and reads the cookies.

    They are signed with a key made from the operators' tokens: all workers and machines with the
    same settings take the same cookies, and another set of tokens ends them all.
    """

    def __init__(self, settings: Settings) -> None:
        self._tokens = dict(settings.operator_tokens)
        self._namespace = settings.namespace

    def operator(self, request: Request) -> str | None:
        """The operator whose cookie a request brings; None if it brings none that holds."""
        value = request.cookies.get(COOKIE)
        if not value:
            return None
        try:
            name = self._serializer.loads(value, max_age=LASTS_S)
        except BadData:
            return None
        return name if name in self._tokens.values() else None

    def sign_in(self, response: Response, operator: str, *, path: str, secure: bool) -> None:
        """Have the browser known as this operator.

        :param path: of the page; the cookie is sent nowhere else.
        :param secure: whether the browser came by HTTPS.
        """
        response.set_cookie(
            COOKIE, self._serializer.dumps(operator), max_age=LASTS_S, path=path, secure=secure,
            httponly=True, samesite="Strict",
        )  # fmt: skip

    def sign_out(self, response: Response, *, path: str, secure: bool) -> None:
        """Have the browser forget the cookie."""
        response.delete_cookie(COOKIE, path, secure=secure, httponly=True, samesite="Strict")

    @cached_property
    def _serializer(self) -> URLSafeTimedSerializer:
        tokens = json.dumps(sorted(self._tokens.items())).encode()
        key = hashlib.scrypt(tokens, salt=f"{_SALT} {self._namespace}".encode(), **_SCRYPT)
        kinds = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
        return URLSafeTimedSerializer(key, salt=_SALT, signer_kwargs=kinds)


def from_own_page(request: Request) -> None:
    """Let a form through that this page sent, or that no browser did.

    :raises Forbidden: another site's page sent it.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        own = site in ("same-origin", "none")
    else:
        own = origin is None or urlsplit(origin).netloc == request.host
    if not own:
        raise Forbidden("This form came from another site.")
