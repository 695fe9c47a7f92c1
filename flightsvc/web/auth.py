"""Who asks: bearer tokens, each of one tenant or operator (RFC 6750), or the host's own answer."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Literal

from flask import Request
from werkzeug.exceptions import Forbidden

from flightsvc.errors import NotFound, SettingsError, Unauthenticated
from flightsvc.settings.checks import MAX_TENANT, is_too_long

#: The host's own authentication: the tenant of a request, or None if it has none.
TenantOf = Callable[[Request], str | None]


class Authenticator:
    """Finds the tenant, or the operator, of a request. The tokens of one open nothing to the other.

    :param tokens: token → tenant; empty: everybody is the tenant ``""``.
    :param tenant_of: asked instead of the tokens where it is given.
    :param operators: token → an operator's name; empty: there is nothing for operators.
    """

    def __init__(
        self,
        tokens: Mapping[str, str],
        tenant_of: TenantOf | None = None,
        operators: Mapping[str, str] | None = None,
    ) -> None:
        self._blinding = os.urandom(32)
        self._tenants = self._by_blinded(tokens)
        self._operators = self._by_blinded(operators or {})
        self._tenant_of = tenant_of

    @property
    def asks(self) -> Literal["", "tokens", "host"]:
        """What tells who is which tenant; empty: everybody is the same one."""
        if self._tenant_of is not None:
            return "host"
        return "tokens" if self._tenants else ""

    def tenant(self, request: Request) -> str:
        """The tenant that asks.

        :raises Unauthenticated: no token, an unknown one, or the host says that there is none.
        :raises Forbidden: the token is an operator's.
        """
        if self._tenant_of is not None:
            named = self._tenant_of(request)
            if named is None:
                raise Unauthenticated("Please sign in.")
            if not isinstance(named, str):
                raise SettingsError(
                    f"tenant_of returned {type(named).__name__}: return the tenant as text, or None"
                )
            if not named:  # what `session.get("user", "")` says of everybody who is not signed in
                raise SettingsError('tenant_of returned "": return None where nobody is signed in')
            if is_too_long(named):  # its answers could not be kept
                raise SettingsError(
                    f"tenant_of returned more than {MAX_TENANT} bytes of UTF-8: return a shorter "
                    f"name, such as an id or a hash"
                )
            return named
        if not self._tenants:
            return ""
        return self._of_token(request, self._tenants, self._operators)

    def operator(self, request: Request) -> str:
        """The name of the operator that asks.

        :raises NotFound: there are no operators, so there is nothing for them either.
        :raises Unauthenticated: no token, or an unknown one.
        :raises Forbidden: the token is a tenant's.
        """
        if not self._operators:
            raise NotFound
        return self._of_token(request, self._operators, self._tenants)

    def operator_of(self, token: str) -> str | None:
        """The name of the operator whose token it is; None if it is nobody's.

        :raises NotFound: there are no operators.
        """
        if not self._operators:
            raise NotFound
        return self._operators.get(self._blinded(token.strip().encode("utf-8", "replace")))

    def _of_token(
        self, request: Request, known: Mapping[bytes, str], others: Mapping[bytes, str]
    ) -> str:
        scheme, _, token = request.environ.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated("Send a known token: `Authorization: Bearer …`.")
        # WSGI hands bytes on as Latin-1; a proxy or client cannot send other characters.
        blinded = self._blinded(token.strip().encode("latin-1", "replace"))
        name = known.get(blinded)
        if name is None and blinded in others:
            raise Forbidden("This token does not open this address.")
        if name is None:
            raise Unauthenticated("This token is not known.")
        return name

    def _by_blinded(self, tokens: Mapping[str, str]) -> dict[bytes, str]:
        return {self._blinded(token.encode("utf-8")): name for token, name in tokens.items()}

    def _blinded(self, token: bytes) -> bytes:
        """A keyed hash: how long the look-up takes then says nothing about any token."""
        return hashlib.blake2b(token, key=self._blinding, digest_size=32).digest()
