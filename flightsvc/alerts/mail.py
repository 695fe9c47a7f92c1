"""Alerts by e-mail: SMTP, with TLS where the server has it."""

from __future__ import annotations

import ipaddress
import smtplib
import socket
import ssl
from contextlib import suppress
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from flightsvc.alerts.alert import Alert
from flightsvc.alerts.channels import NotSent
from flightsvc.settings.alerting import MailServer

#: how long a server may take to say goodbye, in s
GOODBYE_S = 1.0


class MailChannel:
    """Hands mail to one server.

    TLS is used where the server offers it, and its certificate is checked. A password is sent
    over TLS only, or to this very machine.

    :param sender: address that mails come from.
    :param recipients: addresses that they go to.
    """

    name = "email"

    def __init__(self, server: MailServer, sender: str, recipients: tuple[str, ...]) -> None:
        self._server = server
        self._sender = sender
        self._recipients = recipients

    def send(self, alert: Alert, timeout_s: float) -> None:
        """See :class:`flightsvc.alerts.channels.Channel`."""
        try:
            refused = self._hand_over(alert, timeout_s)
        except smtplib.SMTPResponseException as error:  # its text may quote who logs in
            passing = 400 <= error.smtp_code < 500
            raise NotSent(f"SMTP {error.smtp_code}", passing=passing) from None
        except smtplib.SMTPRecipientsRefused as error:
            codes = {code for code, _ in error.recipients.values()}
            passing = all(400 <= code < 500 for code in codes)
            raise NotSent(f"all recipients refused {sorted(codes)}", passing=passing) from None
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise NotSent(type(error).__name__) from None
        if refused:
            raise NotSent(f"{refused} of the recipients were refused", passing=False)

    def _hand_over(self, alert: Alert, timeout_s: float) -> int:
        """Give the server the mail.

        :returns: how many of the recipients it refused.
        """
        smtp = self._connected(timeout_s)
        try:
            refused = smtp.send_message(self._message(alert), self._sender, self._recipients)
            with suppress(smtplib.SMTPException, OSError):  # it has the mail, whatever it says now
                if smtp.sock is not None:
                    smtp.sock.settimeout(GOODBYE_S)
                smtp.quit()
        finally:
            smtp.close()
        return len(refused)

    def _connected(self, timeout_s: float) -> smtplib.SMTP:
        """A connection that is ready for a message."""
        server = self._server
        # said in the greeting; smtplib's own way to find it asks the DNS
        name = socket.gethostname()
        if server.tls:
            smtp: smtplib.SMTP = smtplib.SMTP_SSL(
                server.host,
                server.port,
                name,
                timeout=timeout_s,
                context=ssl.create_default_context(),
            )
        else:
            smtp = smtplib.SMTP(server.host, server.port, name, timeout=timeout_s)
        try:
            self._secure(smtp)
        except BaseException:
            smtp.close()
            raise
        return smtp

    def _secure(self, smtp: smtplib.SMTP) -> None:
        server, private = self._server, self._server.tls
        smtp.ehlo_or_helo_if_needed()
        if not private and smtp.has_extn("starttls"):
            smtp.starttls(context=ssl.create_default_context())
            smtp.ehlo()
            private = True
        if not server.user:
            return
        if not private and not _is_here(server.host):
            raise NotSent("the server offers no TLS, so it gets no password", passing=False)
        self._log_in(smtp)

    def _log_in(self, smtp: smtplib.SMTP) -> None:
        """One try, by the first way that the server offers: ``smtplib`` would try all of them, and
        so report how the last one failed, or lock the account."""
        ways: dict[str, Any] = {
            "PLAIN": smtp.auth_plain,
            "LOGIN": smtp.auth_login,
            "CRAM-MD5": smtp.auth_cram_md5,
        }
        offered = smtp.esmtp_features.get("auth", "").upper().split()
        for name, way in ways.items():
            if name in offered:
                smtp.user, smtp.password = self._server.user, self._server.password
                smtp.auth(name, way)
                return
        raise NotSent("the server offers no login that is known here", passing=False)

    def _message(self, alert: Alert) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = alert.title
        message["From"] = self._sender
        message["To"] = ", ".join(self._recipients)
        message["Date"] = format_datetime(alert.time)
        # the same for every try: a mail that arrives twice is shown once
        message["Message-ID"] = f"<{alert.id}@{self._sender.rpartition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"
        lines = [alert.summary, "", *(f"{name}: {value}" for name, value in alert.facts())]
        # in ASCII, whether or not the server takes more
        message.set_content("\n".join(lines) + "\n", cte="quoted-printable")
        return message


def _is_here(host: str) -> bool:
    """Whether a host is this machine, as far as its name says so."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
