"""A mail server as a process of its own: ``python -m tests.alerts.mail_server OPTIONS``.

It prints its port, then a line of JSON for each mail that it takes. ``MailServer`` is the test's
side of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import subprocess
import sys
from types import TracebackType
from typing import Any, Self

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

from tests.processes import ROOT


class Handler:
    """Takes mail, or refuses it with the reply that it was given."""

    def __init__(self, refuse: str, refuse_recipient: str) -> None:
        self._refuse = refuse
        self._refuse_recipient = refuse_recipient

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address == self._refuse_recipient:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        if self._refuse:
            return self._refuse
        content = envelope.content
        assert isinstance(content, bytes)
        took = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "tls": session.ssl is not None,
            "login": bool(session.authenticated),
            "greeted_as": session.host_name,
            "mail": content.decode("utf-8", "surrogateescape"),
        }
        print(json.dumps(took), flush=True)
        return "250 OK"


async def serve(given: argparse.Namespace) -> None:
    tls = None
    if given.certificate:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(given.certificate)

    def authenticate(_s: Any, _session: Any, _e: Any, _mechanism: str, data: Any) -> AuthResult:
        said = f"{data.login.decode()}:{data.password.decode()}"
        return AuthResult(success=said == given.login, handled=False)

    def connection() -> SMTP:
        return SMTP(
            Handler(given.refuse, given.refuse_recipient),
            hostname="mail.test",
            tls_context=None if given.tls_at_once else tls,
            authenticator=authenticate,
            auth_required=bool(given.login),
            auth_require_tls=not given.login or (bool(tls) and not given.tls_at_once),
        )

    loop = asyncio.get_running_loop()
    at_once = tls if given.tls_at_once else None
    server = await loop.create_server(connection, "127.0.0.1", 0, ssl=at_once)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)  # until whoever started it is gone


class MailServer:
    """The server, for a ``with`` block.

    :param options: of the command line, by name.
    """

    def __init__(self, **options: str | bool) -> None:
        self._options: list[str] = []
        for name, value in options.items():
            word = "--" + name.replace("_", "-")
            self._options += [word] if value is True else [word, str(value)]
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    def took(self) -> dict[str, Any]:
        """The next mail that it takes."""
        assert self._process is not None
        assert self._process.stdout is not None
        mail: dict[str, Any] = json.loads(self._process.stdout.readline())
        return mail

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.alerts.mail_server", *self._options],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--login", default="")
    parser.add_argument("--certificate", default="")
    parser.add_argument("--tls-at-once", action="store_true")
    parser.add_argument("--refuse", default="")
    parser.add_argument("--refuse-recipient", default="")
    asyncio.run(serve(parser.parse_args()))
