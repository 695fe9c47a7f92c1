"""HTTP to a model: one POST, three kinds of patience, one bounded body.

A POST to a model costs money and may have been carried out even if its answer got lost, so it is
never sent twice from here. A kept connection that the server has closed meanwhile is noticed
*before* anything is sent, and replaced. If it closes later than that, the caller is told
(:class:`ProviderUnreachable`), and the guard decides whether another call is worth it.
"""

from __future__ import annotations

import http.client
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import gevent
import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    DecodeError,
    HTTPError,
    NewConnectionError,
    SSLError,
)
from urllib3.exceptions import TimeoutError as HttpTimeoutError

from flightsvc.errors import AnswerInvalid, ProviderTimeout, ProviderUnreachable, SettingsError

#: Largest answer body, in bytes, counted after decompression.
MAX_ANSWER_BYTES = 8 * 1024 * 1024
#: How much of an error's body is read to find its code, in bytes, and how long that may take, in s.
MAX_ERROR_BYTES, ERROR_BODY_S = 64 * 1024, 1.0

_PIECE_BYTES = 64 * 1024


@contextmanager
def at_most(seconds: float, message: str) -> Iterator[None]:
    """Bound what runs inside in time.

    It holds against a server that drips, which no socket timeout does.

    :param seconds: the bound; 0 or less: nothing is run.
    :raises ProviderTimeout: with ``message``, when the time is over.
    """
    if seconds <= 0:
        raise ProviderTimeout(message)
    timer = gevent.Timeout.start_new(seconds)
    try:
        yield
    except gevent.Timeout as reached:
        if reached is not timer:  # somebody else's, further out
            raise
        raise ProviderTimeout(message) from None
    finally:
        timer.close()


class Transport:
    """Connections to one model server; none is opened before the first call.

    :param base_url: checked already; the path of every call is appended to it.
    :param headers: sent with every call.
    :param connect_s: longest time to connect, in seconds.
    :param connections: as many are kept open between calls; more are opened when needed.
    """

    def __init__(
        self, base_url: str, headers: Mapping[str, str], *, connect_s: float, connections: int
    ) -> None:
        self._prefix = urllib3.util.parse_url(base_url).path or ""
        self._headers = dict(headers)
        self._key = _key_pattern(self._headers.get("Authorization", ""))
        self._connect_s = connect_s
        # One TLS context for all connections: loading the trusted certificates blocks the worker.
        tls = {"ssl_context": ssl.create_default_context()} if base_url.startswith("https") else {}
        self._pool = urllib3.connection_from_url(
            base_url, maxsize=connections, block=False, retries=False, **tls
        )

    @contextmanager
    def post(
        self,
        path: str,
        body: bytes | None,
        *,
        timeout_s: float,
        first_byte_s: float,
        headers: Mapping[str, str] | None = None,
        method: str = "POST",
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """Send one request; its answer's head is there, its body is still to be read.

        Whatever ends the block early (an error, a kill) closes the connection; only after a
        whole body is it kept.

        :param timeout_s: what is left of the call's time, in seconds.
        :param first_byte_s: longest time until the answer begins, connecting included.
        :param headers: of this call alone.
        :param method: another one than POST.
        :raises ProviderTimeout: no connection or no answer in time.
        :raises ProviderUnreachable: refused, reset, cut, or not HTTP.
        """
        patience = urllib3.Timeout(connect=min(self._connect_s, timeout_s), read=timeout_s)
        with _as_provider_errors():
            with at_most(first_byte_s, "The model did not begin to answer in time."):
                response = self._pool.urlopen(
                    method,
                    self._prefix + path,
                    body=body,
                    headers={**self._headers, **(headers or {})},
                    timeout=patience,
                    retries=False,
                    redirect=False,
                    preload_content=False,
                )
            try:
                yield response
            finally:
                response.close()  # does nothing to a connection that went back to the pool

    def without_key(self, text: str) -> str:
        """A text of the service, with ``***`` where it quotes the key that it was called with."""
        return text if self._key is None else self._key.sub("***", text)

    def close(self) -> None:
        """Close the kept connections; calls that are under way end as they would have."""
        self._pool.close()


def _key_pattern(authorization: str) -> re.Pattern[str] | None:
    """Finds the key of a header; a short one ("x", "none") only where it stands alone."""
    key = authorization.removeprefix("Bearer ").strip()
    if not key:
        return None
    found = re.escape(key)
    return re.compile(found if len(key) > 8 else rf"(?<!\w){found}(?!\w)")


def checked_base_url(name: str, url: str, example: str) -> str:
    """An address to make calls to, without a slash at its end.

    :param name: the setting that it comes from.
    :raises SettingsError: calls cannot be made to it.
    """
    try:
        parts = urllib3.util.parse_url(url)
    except urllib3.exceptions.LocationParseError:
        parts = urllib3.util.parse_url("")
    is_fine = parts.scheme in ("http", "https") and bool(parts.host)
    if not is_fine or parts.auth or parts.query or parts.fragment:
        raise SettingsError(
            f"{name} must be http:// or https://, with a host and without user, query or "
            f"fragment, such as {example}."
        )
    return parts.url.rstrip("/")


def read_body(
    response: urllib3.BaseHTTPResponse, between_bytes_s: float, limit: int = MAX_ANSWER_BYTES
) -> bytes:
    """The whole body, decompressed piece by piece, so that it cannot inflate past the limit.

    :param between_bytes_s: longest silence, in seconds.
    :param limit: most bytes.
    :raises ProviderTimeout: silence.
    :raises AnswerInvalid: it is longer.
    """
    return b"".join(read_pieces(response, between_bytes_s, limit))


def read_pieces(
    response: urllib3.BaseHTTPResponse, between_bytes_s: float, limit: int = MAX_ANSWER_BYTES
) -> Iterator[bytes]:
    """The body of a stream, piece by piece as it comes; parameters as of :func:`read_body`."""
    size = 0
    while True:
        with at_most(between_bytes_s, "The model fell silent within its answer."):
            piece = response.read1(_PIECE_BYTES)
        if not piece:
            return
        size += len(piece)
        if size > limit:
            raise AnswerInvalid(
                f"The model's answer is larger than {limit} bytes.", code="AI_ANSWER_TOO_LARGE"
            )
        yield piece


def read_error_body(response: urllib3.BaseHTTPResponse) -> bytes:
    """The body of a refusal, as far as it comes: what is known already must not get lost over
    a body that is cut, dripped or endless."""
    try:
        with at_most(ERROR_BODY_S, "error body"):
            return read_body(response, ERROR_BODY_S, MAX_ERROR_BYTES)
    except (ProviderTimeout, AnswerInvalid, HTTPError, OSError, http.client.HTTPException):
        return b""


@contextmanager
def _as_provider_errors() -> Iterator[None]:
    """Turn what urllib3 raises into our errors."""
    try:
        yield
    except DecodeError:
        raise AnswerInvalid("The model's answer cannot be decompressed.") from None
    except SSLError as error:
        raise ProviderUnreachable("No trusted TLS connection to the model.") from error
    except NewConnectionError as error:  # a kind of ConnectTimeoutError, though it is no timeout
        raise ProviderUnreachable("No connection to the model.") from error
    except ConnectTimeoutError as error:
        raise ProviderTimeout("The model could not be connected to in time.") from error
    except (HTTPError, OSError, http.client.HTTPException) as error:
        # Not chained: some of these quote what the model sent. Their names are telling enough.
        if _is_timeout(error):
            raise ProviderTimeout("The model was silent for too long.") from None
        raise ProviderUnreachable(f"The connection to the model broke ({_cause(error)}).") from None


def _cause(error: BaseException) -> str:
    """The class of what is at the bottom of an error."""
    inner = next((each for each in error.args if isinstance(each, BaseException)), None)
    return type(error).__name__ if inner is None else _cause(inner)


def _is_timeout(error: BaseException) -> bool:
    """Whether a timeout is at the bottom of it: one while sending comes wrapped as a broken
    connection."""
    causes = (error, *error.args)
    return any(isinstance(cause, (HttpTimeoutError, TimeoutError)) for cause in causes)
