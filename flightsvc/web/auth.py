"""Who asks: bearer tokens, each of one tenant (RFC 6750), or the host app's own answer."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping

from flask import Request

from flightsvc.errors import SettingsError, Unauthenticated

#: The host's own authentication: the tenant of a request, or None if it has none.
TenantOf = Callable[[Request], str | None]


class Authenticator:
    """Finds the tenant of a request.

    :param tokens: token → tenant; empty: everybody is the tenant ``""``.
    :param tenant_of: asked instead of the tokens where it is given.
    """

    def __init__(self, tokens: Mapping[str, str], tenant_of: TenantOf | None = None) -> None:
        self._blinding = os.urandom(32)
        self._tenants = {
            self._blinded(token.encode("utf-8")): tenant for token, tenant in tokens.items()
        }
        self._tenant_of = tenant_of

    def tenant(self, request: Request) -> str:
        """The tenant that asks.

        :raises Unauthenticated: no token, an unknown one, or the host says that there is none.
        """
        if self._tenant_of is not None:
            named = self._tenant_of(request)
            if named is None:
                raise Unauthenticated("Please sign in.")
            if not isinstance(named, str):
                raise SettingsError(
                    f"tenant_of returned {type(named).__name__}: return the tenant as text, or None"
                )
            return named
        if not self._tenants:
            return ""
        return self._of_token(request.environ.get("HTTP_AUTHORIZATION", ""))

    def _of_token(self, header: str) -> str:
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated("Send a known token: `Authorization: Bearer …`.")
        # WSGI hands bytes on as Latin-1; a proxy or client cannot send other characters.
        tenant = self._tenants.get(self._blinded(token.strip().encode("latin-1", "replace")))
        if tenant is None:
            raise Unauthenticated("This token is not known.")
        return tenant

    def _blinded(self, token: bytes) -> bytes:
        """A keyed hash: how long the look-up takes then says nothing about any token."""
        return hashlib.blake2b(token, key=self._blinding, digest_size=32).digest()
