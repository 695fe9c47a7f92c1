"""Where alerts are sent: addresses as users write them. No message shows any part of one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from flightsvc.settings.model import Settings

#: port where none is given: submission (RFC 6409), and submission over TLS (RFC 8314)
SMTP_PORT, SMTPS_PORT = 587, 465

_ADDRESS = re.compile(r"[!-?A-~]{1,64}@[A-Za-z0-9.\[\]:_-]{1,255}")


@dataclass(frozen=True, slots=True)
class MailServer:
    """A server that takes mail.

    :param tls: TLS from the first byte on; else by STARTTLS where the server offers it.
    """

    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)
    tls: bool = False


def parse_mail_server(url: str) -> MailServer:
    """The server of an ``smtp://user:password@host:port`` URL, or ``smtps://``.

    :raises ValueError: it cannot be read; says why, without any of it.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("has a host or port that cannot be read") from None
    if parts.scheme not in ("smtp", "smtps"):
        raise ValueError("must begin with smtp:// or smtps:// (TLS from the first byte)")
    if not parts.hostname or port == 0:
        raise ValueError("names no host or port")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(
            "must end with its host or port (write / ? # in a password as %2F %3F %23)"
        )
    if parts.username and parts.password is None:
        raise ValueError("names a user without a password")
    tls = parts.scheme == "smtps"
    return MailServer(
        host=parts.hostname,
        port=port or (SMTPS_PORT if tls else SMTP_PORT),
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        tls=tls,
    )


def alert_faults(settings: Settings) -> Iterator[str]:
    """A sentence for everything in the alert settings that cannot work."""
    for name in ("alert_webhook_url", "alert_wecom_url"):
        url = getattr(settings, name)
        if url and not _is_http(url):
            yield f"<{name}> must be an http:// or https:// URL with a host and without a user."
    yield from _mail_faults(settings)


def _mail_faults(settings: Settings) -> Iterator[str]:
    url = settings.alert_smtp_url
    if url:
        try:
            parse_mail_server(url)
        except ValueError as fault:
            yield f"<alert_smtp_url> {fault}: write smtp://user:password@host:587."
        for name in ("alert_email_from", "alert_email_to"):
            if not getattr(settings, name):
                yield f"<alert_smtp_url> is set, but <{name}> is empty: set both, or neither."
    elif settings.alert_email_to:
        yield "<alert_email_to> is set, but <alert_smtp_url> is empty: set both, or neither."
    if settings.alert_email_from and not _ADDRESS.fullmatch(settings.alert_email_from):
        yield "<alert_email_from> must be one mail address, such as alerts@example.com."
    if not all(map(_ADDRESS.fullmatch, settings.alert_email_to)):
        yield '<alert_email_to> must be mail addresses, such as ["ops@example.com"].'


def _is_http(url: str) -> bool:
    if re.search(r"[^!-~]", url):
        return False
    try:
        parts = urlsplit(url)
        is_fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_fine and parts.username is None
