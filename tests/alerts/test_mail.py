"""Mail against a real server: plain, with STARTTLS, with TLS at once, with a login, refusing."""

from __future__ import annotations

import email
import email.policy
import socket
import time
from pathlib import Path

import gevent
import pytest
import trustme

from flightsvc.alerts.channels import NotSent
from flightsvc.alerts.mail import MailChannel
from flightsvc.settings.alerting import MailServer as Address
from flightsvc.settings.alerting import parse_mail_server
from tests.alerts.mail_server import MailServer
from tests.alerts.scene import SECRET, alert

TO = ("ops@example.com", "duty@example.com")


def channel(
    port: int, login: str = "", scheme: str = "smtp", host: str = "localhost"
) -> MailChannel:
    at = f"{login}@" if login else ""
    server = parse_mail_server(f"{scheme}://{at}{host}:{port}")
    return MailChannel(server, "alerts@example.com", TO)


def refused(one: MailChannel, timeout_s: float = 5) -> NotSent:
    with pytest.raises(NotSent) as failed:
        one.send(alert(), timeout_s)
    assert SECRET not in f"{failed.value!r} {failed.value.__cause__!r}"
    assert "ops" not in str(failed.value)
    return failed.value


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of localhost, by an authority that this process trusts."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(
        tmp_path / "server.pem"
    )
    return str(tmp_path / "server.pem")


def test_a_mail_says_what_happened_and_where() -> None:
    with MailServer() as server:
        channel(server.port).send(sent := alert(), 5)
        took = server.took()
    mail = email.message_from_bytes(took["mail"].encode(), policy=email.policy.default)
    assert (took["from"], took["to"]) == ("alerts@example.com", list(TO))
    assert (took["tls"], took["login"]) == (False, False)
    assert took["greeted_as"] == socket.gethostname()
    assert mail["Subject"] == "[P2] AI_INFRA_TIMEOUT (shop)"
    assert mail["To"] == ", ".join(TO)
    assert mail["Message-ID"] == f"<{sent.id}@example.com>"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert took["mail"].isascii()
    text = mail.get_content().replace("\r\n", "\n")
    assert text.startswith("12 failures within 60 s (alert from 3)\n")
    assert "含义: 模型超时" in text
    assert f"trace_id: {'ab' * 16}" in text


def test_starttls_is_used_where_it_is_offered_and_then_the_login(certificate: str) -> None:
    login = f"user:{SECRET}"
    with MailServer(certificate=certificate, login=login) as server:
        channel(server.port, login).send(alert(), 5)
        took = server.took()
    assert (took["tls"], took["login"]) == (True, True)


def test_starttls_needs_no_login(certificate: str) -> None:
    with MailServer(certificate=certificate) as server:
        channel(server.port).send(alert(), 5)
        assert server.took()["tls"]


def test_smtps_is_tls_from_the_first_byte(certificate: str) -> None:
    login = f"user:{SECRET}"
    with MailServer(certificate=certificate, login=login, tls_at_once=True) as server:
        channel(server.port, login, scheme="smtps").send(alert(), 5)
        assert server.took()["login"]


def test_a_password_goes_to_this_machine_also_without_tls() -> None:
    login = f"user:{SECRET}"
    with MailServer(login=login) as server:
        channel(server.port, login).send(alert(), 5)
        assert server.took()["login"]


def test_a_password_goes_nowhere_else_without_tls() -> None:
    """Any other name of this machine is another machine, as far as the channel knows."""
    login = f"user:{SECRET}"
    with MailServer(login=login) as server:
        failure = refused(channel(server.port, login, host="localhost.localdomain."))
    assert not failure.passing or "gaierror" in str(failure)


def test_a_certificate_that_is_not_trusted_ends_it(
    certificate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    login = f"user:{SECRET}"
    with MailServer(certificate=certificate, login=login) as server:
        assert "SSLCertVerificationError" in str(refused(channel(server.port, login)))


def test_a_wrong_password_is_final() -> None:
    with MailServer(login="user:other") as server:
        failure = refused(channel(server.port, f"user:{SECRET}"))
    assert (str(failure), failure.passing) == ("SMTP 535", False)


def test_a_server_without_any_login() -> None:
    with MailServer() as server:
        assert not refused(channel(server.port, f"user:{SECRET}")).passing


@pytest.mark.parametrize(("reply", "passing"), [("451 later", True), ("554 never", False)])
def test_a_server_that_refuses_the_mail(reply: str, passing: bool) -> None:
    with MailServer(refuse=reply) as server:
        failure = refused(channel(server.port))
    assert (str(failure), failure.passing) == (f"SMTP {reply[:3]}", passing)


def test_one_recipient_refused_is_told_and_the_other_has_the_mail() -> None:
    with MailServer(refuse_recipient=TO[0]) as server:
        failure = refused(channel(server.port))
        assert server.took()["to"] == [TO[1]]
    assert (str(failure), failure.passing) == ("1 of the recipients were refused", False)


def test_all_recipients_refused() -> None:
    with MailServer(refuse_recipient=TO[0]) as server:
        one = MailChannel(Address("localhost", server.port), "alerts@example.com", TO[:1])
        failure = refused(one)
    assert (str(failure), failure.passing) == ("all recipients refused [550]", False)


def test_nobody_there_and_a_silent_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        began = time.monotonic()
        assert refused(channel(port), timeout_s=0.2).passing
        assert time.monotonic() - began < 5
    assert refused(channel(port)).passing


def test_a_server_that_says_no_goodbye_has_the_mail_all_the_same() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            connection.sendall(b"220 mail.test\r\n")
            for line in map(bytes.upper, connection.makefile("rb")):
                if line.startswith(b"DATA"):
                    connection.sendall(b"354 go on\r\n")
                elif line.startswith(b"QUIT"):
                    gevent.sleep(60)
                elif line == b".\r\n" or line[:4] in (b"EHLO", b"MAIL", b"RCPT"):
                    connection.sendall(b"250 OK\r\n")

        serving = gevent.spawn(serve)
        channel(server.getsockname()[1]).send(alert(), 20)
        serving.kill()
