"""One request while it is served: its trace, who asks, and the line that is logged of it."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from flask import Request, request
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from flightsvc.errors import FlightSvcError, RecordsError, SettingsError
from flightsvc.facts import CallFacts
from flightsvc.logs import Told, log_failure, log_request
from flightsvc.tracing import TraceContext
from flightsvc.web.extension import Extension
from flightsvc.web.problem import MIMETYPE

_ENVIRON_KEY = "flightsvc.asking"

log = logging.getLogger("flightsvc.web")


class Asking:
    """What becomes known of a request; plain values, which may outlive it."""

    def __init__(self, asked: Request, session_id: str = "") -> None:
        environ = asked.environ
        self.trace = TraceContext.of(
            environ.get("HTTP_TRACEPARENT"), environ.get("HTTP_TRACESTATE")
        )
        self.facts = CallFacts(trace_id=self.trace.trace_id, session_id=session_id)
        #: code of what the client was told inside of its answer, or in another form than a problem
        self.told = ""
        self._method: str = environ["REQUEST_METHOD"]
        self._began = time.perf_counter()
        environ[_ENVIRON_KEY] = self

    def failed(self, error: Exception) -> None:
        """Log what a view raised, if nobody foresaw it: no flight's worker has seen it."""
        if isinstance(error, RecordsError):  # its client is told neither where nor why
            log.warning("The records were not used for a request: %s", error.inside)
        foreseen = isinstance(error, (FlightSvcError, HTTPException))
        if not foreseen or isinstance(error, SettingsError):
            self.facts.code = self.facts.code or "UNEXPECTED"
            log_failure(self.facts, Told(), error, duration_s=self._age_s(), foreseen=False)

    def answered(self, route: str, response: Response) -> None:
        """Name the trace in the answer, and log the request by what its client is told."""
        response.headers["traceparent"] = self.trace.traceparent
        if response.is_streamed:  # how it went is known when it has ended
            response.call_on_close(lambda: self._log(route, response))
        else:
            self._log(route, response)

    def _log(self, route: str, response: Response) -> None:
        headers = response.headers
        fence = headers.get("Flight-Fence", "")
        log_request(
            trace=self.trace,
            facts=self.facts,
            told=Told(
                headers.get("Flight-Id", ""),
                int(fence) if fence.isdecimal() else None,
                headers.get("Flight-Role", ""),
            ),
            method=self._method,
            route=route,
            status=response.status_code,
            duration_s=self._age_s(),
            code=self.told or _code_of(response),
            fallback_action=headers.get("Flight-Fallback", ""),
        )

    def _age_s(self) -> float:
        return time.perf_counter() - self._began


def _code_of(response: Response) -> str:
    """The code of the problem that a client is told; empty if it is told none."""
    if response.status_code < 400:
        return ""
    if response.mimetype != MIMETYPE:
        return f"HTTP_{response.status_code}"
    return str(json.loads(response.get_data())["code"])


def begin(values: dict[str, Any]) -> Asking:
    """The asking of the current request, from now on.

    :param values: those in its address.
    """
    return Asking(request, str(values.get("session_id", "")))


def asking() -> Asking:
    """The asking of the current request."""
    found: Asking = request.environ[_ENVIRON_KEY]
    return found


def asking_tenant(service: Extension) -> str:
    """The tenant that asks; the log says it too.

    :raises Unauthenticated: see :meth:`flightsvc.web.auth.Authenticator.tenant`.
    """
    tenant = service.authenticator.tenant(request)
    asking().facts.tenant = tenant
    return tenant
