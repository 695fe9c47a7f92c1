"""A recorded trace: one JSON object a line, one line a request. docs/checklist.md says it all."""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flightsvc import errors
from flightsvc.errors import (
    FlightSvcError,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderTimeout,
    ProviderUnavailable,
    SettingsError,
)

#: a day, in ms
LONGEST_MS = 86_400_000
Milliseconds = Annotated[int, Field(ge=0, le=LONGEST_MS)]
Name = Annotated[str, Field(min_length=1, max_length=100)]


class Outcome(BaseModel):
    """How one attempt ended. With neither ``code``, ``status``, ``upstream_code`` nor
    ``exception`` it brought an answer."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    latency_ms: Milliseconds
    #: a code of the list, or one that flightsvc answers with
    code: Name | None = None
    #: HTTP status of the provider
    status: Annotated[int, Field(ge=100, le=599)] | None = None
    #: code in the provider's answer
    upstream_code: Name | int | None = None
    #: class name of what was raised, with its message
    exception: Name | None = None
    text: Annotated[str, Field(max_length=2_000)] = ""
    #: wait that the provider asked for
    retry_after_ms: Milliseconds = 0

    def error(self) -> BaseException | None:
        """The failure, as the list classifies it; None for an answer."""
        if self.exception is not None:
            return _raised(self.exception, self.text, self._upstream())
        if self.code is not None:
            return FlightSvcError(self.text, code=self.code)
        upstream = self._upstream()
        if self.upstream_code is None and (self.status is None or self.status < 300):
            return None
        return _by_status(self.status or 200)(self.text, **upstream)

    def _upstream(self) -> dict[str, Any]:
        code = self.upstream_code
        return {
            "upstream_status": self.status,
            "upstream_code": None if code is None else str(code),
        }


class Request(Outcome):
    """One request, and how its first attempt ended."""

    #: when it came, from the beginning of the trace
    at_ms: Annotated[int, Field(ge=0)]
    stage: Name = "default"
    provider: str = ""
    #: further attempts, where they were recorded
    attempts: tuple[Outcome, ...] | list[Outcome] = ()
    #: what the smaller model did, where that was recorded
    smaller: Outcome | None = None


def read_trace(lines: Iterable[str], name: str) -> list[Request]:
    """The requests of a trace, in the order of their times.

    :param name: the file, for messages.
    :raises SettingsError: a line is not as it should be, or there is none; names line and fix.
    """
    requests: list[Request] = []
    problems: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            requests.append(Request.model_validate(_object(line)))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            where = ".".join(map(str, fault["loc"])) or "the line"
            problems.append(f"{name}:{number}: {where}: {fault['msg']}")
        except ValueError as error:
            problems.append(f"{name}:{number}: {error}")
    if problems:
        raise SettingsError("\n".join(problems[:20]), code="TRACE_INVALID")
    if not requests:
        raise SettingsError(f"{name} holds no request: record one a line.", code="TRACE_INVALID")
    return sorted(requests, key=lambda request: request.at_ms)


def _object(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("is no JSON: write one object a line") from None
    if not isinstance(found, dict):
        raise ValueError("is no JSON object: write one object a line")
    return found


def _by_status(status: int) -> type[ProviderError]:
    if status == 429:
        return ProviderRateLimited
    if status == 408:
        return ProviderTimeout
    return ProviderRejected if 300 <= status < 500 else ProviderUnavailable


def _raised(name: str, text: str, upstream: dict[str, Any]) -> BaseException:
    """An error of this class: ours, Python's, or a stand-in of the same name."""
    found = getattr(errors, name, None) or getattr(builtins, name, None)
    if isinstance(found, type) and issubclass(found, ProviderError):
        return found(text, **upstream)
    if isinstance(found, type) and issubclass(found, BaseException):
        try:
            return found(text)
        except TypeError:  # it asks for more than a message
            pass
    made: type[BaseException] = type(name.rpartition(".")[2], (Exception,), {})
    return made(text)
