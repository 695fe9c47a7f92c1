"""Ways to send an alert over HTTP: as plain JSON, or as a WeChat Work robot wants it.

Addresses hold secrets, and the libraries' errors quote addresses. So what goes wrong is told by
kind and number alone.
"""

from __future__ import annotations

import json
import ssl
from typing import Any, Protocol

import urllib3
from urllib3.exceptions import HTTPError

from flightsvc.alerts.alert import Alert

#: how much of an answer is read, in bytes
MAX_ANSWER_BYTES = 64 * 1024
#: longest text of a WeChat Work message, in bytes of UTF-8
WECOM_BYTES = 4_096
#: WeChat Work: the system is busy; too many messages. Others do not pass by waiting.
WECOM_PASSING = (-1, 45_009)


class NotSent(Exception):
    """An alert did not get through.

    :param reason: without address, user or password.
    :param passing: whether another try may help.
    :param retry_after_s: what the other side asked for, in s.
    """

    def __init__(
        self, reason: str, *, passing: bool = True, retry_after_s: float | None = None
    ) -> None:
        super().__init__(reason)
        self.passing = passing
        self.retry_after_s = retry_after_s


class Channel(Protocol):
    """One way to send alerts."""

    @property
    def name(self) -> str:
        """As the checklist names it."""

    def send(self, alert: Alert, timeout_s: float) -> None:
        """Send it, and hear that it was taken.

        :param timeout_s: longest wait for one step; the caller bounds the whole.
        :raises NotSent: it was not, or nobody knows.
        """


class WebhookChannel:
    """POSTs the alert's own JSON; any 2xx means that it was taken."""

    name = "webhook"

    def __init__(self, url: str) -> None:
        self._door = _Door(url)

    def send(self, alert: Alert, timeout_s: float) -> None:
        """See :class:`Channel`."""
        self._door.post(alert.document(), timeout_s, most=0)


class WeComChannel:
    """A robot of a WeChat Work group; it answers 200 to everything, and means it by ``errcode``."""

    name = "wecom"

    def __init__(self, url: str) -> None:
        self._door = _Door(url)

    def send(self, alert: Alert, timeout_s: float) -> None:
        """See :class:`Channel`."""
        content = _cut(wecom_markdown(alert), WECOM_BYTES)
        message = {"msgtype": "markdown", "markdown": {"content": content}}
        answer = self._door.post(message, timeout_s, most=MAX_ANSWER_BYTES)
        try:
            errcode = json.loads(answer)["errcode"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise NotSent("its answer holds no errcode") from None
        if errcode != 0:
            number = errcode if isinstance(errcode, int) else "that is no number"
            raise NotSent(f"errcode {number}", passing=errcode in WECOM_PASSING)


def wecom_markdown(alert: Alert) -> str:
    """The alert in the little Markdown that WeChat Work shows."""
    colour = "comment" if alert.policy.severity == "P3" else "warning"
    lines = [f'<font color="{colour}">**{alert.title}**</font>', alert.summary]
    return "\n".join([*lines, *(f"> {name}: {value}" for name, value in alert.facts())])


class _Door:
    """One address that takes POSTs. Redirects and proxies of the environment are not used."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._tls: ssl.SSLContext | None = None

    def post(self, document: dict[str, Any], timeout_s: float, *, most: int) -> bytes:
        """Send JSON; the answer's body.

        :param most: how much of the body is wanted, in bytes.
        :raises NotSent: no connection, or an answer other than 2xx.
        """
        body = json.dumps(document, ensure_ascii=False).encode()
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": "flightsvc",
            "Connection": "close",  # the next alert is far away
        }
        try:
            with urllib3.PoolManager(retries=False, **self._tls_options()) as pool:
                response = pool.request(
                    "POST",
                    self._url,
                    body=body,
                    headers=headers,
                    timeout=timeout_s,
                    redirect=False,
                    preload_content=False,
                )
                try:
                    answer = response.read(most) if most else b""
                finally:
                    response.close()
        except (HTTPError, OSError, ValueError) as error:
            raise NotSent(type(error).__name__) from None
        _check(response.status, response.headers.get("Retry-After", ""))
        return answer

    def _tls_options(self) -> dict[str, Any]:
        if not self._url.startswith("https"):
            return {}
        if self._tls is None:  # loading the trusted certificates takes a while: once
            self._tls = ssl.create_default_context()
        return {"ssl_context": self._tls}


def _check(status: int, retry_after: str) -> None:
    if 200 <= status < 300:
        return
    passing = status in (408, 425, 429) or status >= 500
    wait_s = float(retry_after) if retry_after.isdecimal() and len(retry_after) < 6 else None
    raise NotSent(f"HTTP {status}", passing=passing, retry_after_s=wait_s)


def _cut(text: str, size: int) -> str:
    """The beginning of a text, at most ``size`` bytes of UTF-8, no character cut."""
    return text.encode()[:size].decode(errors="ignore")
