"""Every error of flightsvc, as one tree.

::

    FlightSvcError
    ├── SettingsError              the service does not start; names the setting and the fix
    ├── RequestError               the caller's fault (4xx); nothing was called, nothing stored
    │   ├── InvalidKey             a flight key that cannot be made unambiguous
    │   ├── InvalidInput           a field of the request; names it and the fix
    │   ├── Unauthenticated        no token, or an unknown one
    │   ├── NotFound               no such thing for this tenant
    │   ├── PayloadTooLarge        body over the limit
    │   ├── BodyTooSlow            the body did not come in time
    │   ├── SessionForgotten       the session was deleted while its question was asked
    │   ├── UnsupportedFile        by its content, a file of a type that is not read
    │   ├── UnreadableFile         a file that is damaged, or takes too much to read
    │   │   ├── EncryptedFile      it opens with a password only
    │   │   └── NoText             a PDF without text: a scan, or blank
    │   └── KeyConflict            one explicit key, two different requests
    ├── FallbackAnswer             raised by a failed call to have something stand in for its answer
    ├── CheckedFailure             a failure under the checklist's name for it
    ├── SkipRetry                  raised by a hook: the state has changed, a retry makes no sense
    ├── ModulePaused               an operator, or the checklist, paused this stage or provider
    ├── NestedFlight               a flight asks for itself from inside its own call
    ├── SessionBusy                another heavy request of the session runs
    ├── CallFailed                 the one call behind a flight failed; what every waiter is told
    ├── WaitTimeout                the caller's own deadline passed; the flight goes on
    ├── TooManyWaiters             this worker's cap of waiters is reached
    ├── Draining                   this worker is about to stop
    ├── FlightInterrupted          its owner is gone, and a new one answers in other words
    ├── CoordinationUnavailable    Redis is out of reach and the mode is `distributed`
    ├── ResultRejected             a value that cannot be stored: too large, not JSON and not bytes
    ├── RecordsError               the database did not keep or give a row
    ├── FilesUnavailable           the disk takes no file: full, over its quota, or read-only
    ├── GuardError                 the guard ended the call
    │   ├── Overloaded             bulkhead and queue are full; no attempt was made
    │   ├── CircuitOpen            the provider's breaker is open; no attempt was made
    │   ├── AttemptTimeout         one attempt took longer than its timeout
    │   ├── RetryExhausted         all retries are used up, and the fallback route too
    │   └── BudgetExhausted        the whole budget of the stage is used up
    └── ProviderError              the model, or the way to it
        ├── ProviderUnreachable    no connection, or it broke
        │   └── AnswerCut          the answer ended before it was whole
        ├── ProviderTimeout        connect, first byte or between bytes
        ├── ProviderUnavailable    it answered 5xx
        ├── ProviderRateLimited    it answered 429
        ├── ProviderRejected       it answered 4xx: asking the same again does not help
        └── AnswerInvalid          an answer that is empty, malformed or does not fit

Each class says what its instances are: the failure type of the first article, the code that
clients and logs see, the HTTP status, and whether a later call may succeed (``retryable``).
Messages are safe to show: they never hold a prompt, an answer or a token.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar


class FailureType(str, Enum):
    """The five kinds of failure that a flight can end with (first article, step 8)."""

    TIMEOUT = "TIMEOUT"
    OVERLOAD = "OVERLOAD"
    PROVIDER = "PROVIDER"
    VALIDATION = "VALIDATION"
    UNEXPECTED = "UNEXPECTED"


class FlightSvcError(Exception):
    """Base of the tree.

    :param message: one sentence for the caller; no prompt, answer or token.
    :param code: overrides the class's code, ``UPPER_SNAKE``.
    :param retry_after_s: seconds after which asking again makes sense, if that is known.
    """

    failure_type: ClassVar[FailureType] = FailureType.UNEXPECTED
    default_code: ClassVar[str] = "UNEXPECTED"
    status: int = 500
    retryable: bool = True
    #: the flight that it is about, where there is one: 32 hex digits
    flight_id: str = ""

    def __init__(
        self, message: str = "", *, code: str | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message or (type(self).__doc__ or "").split("\n")[0])
        self.code = code or self.default_code
        self.retry_after_s = retry_after_s


class SettingsError(FlightSvcError):
    """A setting is unknown, wrong, or contradicts another."""

    failure_type = FailureType.VALIDATION
    default_code = "SETTINGS_INVALID"
    retryable = False


class RequestError(FlightSvcError):
    """The request is at fault."""

    failure_type = FailureType.VALIDATION
    default_code = "REQUEST_INVALID"
    status = 400
    retryable = False


class InvalidKey(RequestError, ValueError):
    """The flight key is not usable."""

    default_code = "KEY_INVALID"


class InvalidInput(RequestError):
    """A field of the request is missing or wrong."""

    default_code = "INPUT_INVALID"
    status = 422


class Unauthenticated(RequestError):
    """A known bearer token is required."""

    default_code = "UNAUTHENTICATED"
    status = 401


class NotFound(RequestError):
    """There is nothing under this address."""

    default_code = "NOT_FOUND"
    status = 404


class PayloadTooLarge(RequestError):
    """The body is larger than the limit."""

    default_code = "PAYLOAD_TOO_LARGE"
    status = 413


class BodyTooSlow(RequestError):
    """The body did not come in time."""

    default_code = "BODY_TOO_SLOW"
    status = 408
    retryable = True


class SessionForgotten(RequestError):
    """The session was deleted while the question was being asked."""

    default_code = "SESSION_FORGOTTEN"
    status = 410


class UnsupportedFile(RequestError):
    """This type of file is not read."""

    default_code = "FILE_TYPE_UNSUPPORTED"
    status = 415


class UnreadableFile(RequestError):
    """The file cannot be read: it is damaged."""

    default_code = "FILE_UNREADABLE"
    status = 422


class EncryptedFile(UnreadableFile):
    """The file opens with a password only."""

    default_code = "FILE_ENCRYPTED"


class NoText(UnreadableFile):
    """The PDF has no text: it is a scan, or blank."""

    default_code = "NO_TEXT"


class KeyConflict(RequestError):
    """This explicit key already stands for a different request."""

    default_code = "KEY_CONFLICT"
    status = 422


class SessionBusy(FlightSvcError):
    """Another request of this session is being worked on."""

    failure_type = FailureType.OVERLOAD
    default_code = "SESSION_BUSY"
    status = 409


class FallbackAnswer(FlightSvcError):
    """The call failed, and something else stands in for its answer.

    Raised by a call, never seen by a caller: those who wait get the value, marked; the flight
    is remembered as the failure that it is.

    :param value: what they get, JSON or bytes.
    :param action: which fallback it comes from, a short word.
    :param failure: what the call failed with.
    """

    def __init__(self, value: object, *, action: str, failure: FlightSvcError) -> None:
        super().__init__(code=failure.code, retry_after_s=failure.retry_after_s)
        self.value = value
        self.action = action
        self.failure = failure


class CheckedFailure(FlightSvcError):
    """A failure that the checklist has a name for.

    A call raises it where it knows what happened: ``CheckedFailure("AI_PAYMENT_FAILED")``. What it
    means the checklist says. The failure of a guarded call is one too, with all of that filled in;
    ``__cause__`` is then what was raised.

    :param code: its name in the checklist.
    :param status: HTTP status for a client of the service.
    """

    status = 503

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        failure_type: FailureType = FailureType.UNEXPECTED,
        retryable: bool = True,
        status: int = 503,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(
            message or f"The call failed: {code}.", code=code, retry_after_s=retry_after_s
        )
        self.failure_type = failure_type  # type: ignore[misc]
        self.retryable = retryable
        self.status = status


class SkipRetry(FlightSvcError):
    """What the call was for no longer stands, so it is not made again."""

    retryable = False


class ModulePaused(FlightSvcError):
    """This function is paused; come back later."""

    failure_type = FailureType.OVERLOAD
    default_code = "MODULE_PAUSED"
    status = 503


class NestedFlight(FlightSvcError):
    """A flight asked for itself from inside its own call."""

    default_code = "FLIGHT_NESTED"
    retryable = False


class CallFailed(FlightSvcError):
    """The one call behind this flight failed; every waiter is told the same.

    In the worker that made the call, ``__cause__`` is the original exception.

    :param failure_type: one of the five kinds.
    :param code: what went wrong, ``UPPER_SNAKE``.
    :param retryable: whether a later call may succeed.
    :param status: HTTP status for a client of the service.
    :param flight_id: the flight that failed, 32 hex digits.
    """

    def __init__(
        self,
        message: str = "",
        *,
        failure_type: FailureType,
        code: str,
        retryable: bool,
        status: int,
        retry_after_s: float | None = None,
        flight_id: str = "",
        fence: int = 0,
    ) -> None:
        super().__init__(message, code=code, retry_after_s=retry_after_s)
        self.failure_type = failure_type  # type: ignore[misc]
        self.retryable = retryable
        self.status = status
        self.flight_id = flight_id
        self.fence = fence


class WaitTimeout(FlightSvcError):
    """The answer did not come within the caller's deadline; the call goes on, ask again."""

    failure_type = FailureType.TIMEOUT
    default_code = "WAIT_TIMEOUT"
    status = 504


class TooManyWaiters(FlightSvcError):
    """This worker already holds as many waiting callers as it may."""

    failure_type = FailureType.OVERLOAD
    default_code = "TOO_MANY_WAITERS"
    status = 503


class Draining(FlightSvcError):
    """This worker is about to stop; ask again."""

    failure_type = FailureType.OVERLOAD
    default_code = "DRAINING"
    status = 503


class FlightInterrupted(FlightSvcError):
    """The answer broke off, and the new one does not go on where it ended; ask again."""

    failure_type = FailureType.PROVIDER
    default_code = "FLIGHT_INTERRUPTED"
    status = 503


class CoordinationUnavailable(FlightSvcError):
    """Redis cannot be reached, and the mode does not allow calls without it."""

    failure_type = FailureType.OVERLOAD
    default_code = "COORDINATION_UNAVAILABLE"
    status = 503


class ResultRejected(FlightSvcError):
    """The call returned a value that cannot be stored."""

    failure_type = FailureType.VALIDATION
    default_code = "RESULT_REJECTED"
    retryable = False


class RecordsError(FlightSvcError):
    """The records cannot be reached right now.

    :param kind: ``unreachable``, ``busy``, ``refused`` (by the database) or ``rejected`` (a row
        that no database takes); a metric's name ends in it.
    :param inside: which database, and what it said: for the log and for operators, never for a
        client.
    """

    failure_type = FailureType.OVERLOAD
    default_code = "RECORDS_UNAVAILABLE"
    status = 503

    def __init__(
        self, inside: str = "", *, kind: str = "refused", retry_after_s: float | None = None
    ) -> None:
        super().__init__(retry_after_s=retry_after_s)
        self.kind = kind
        self.inside = inside or str(self)


class FilesUnavailable(FlightSvcError):
    """Files cannot be kept right now."""

    failure_type = FailureType.OVERLOAD
    default_code = "FILES_UNAVAILABLE"
    status = 503


class GuardError(FlightSvcError):
    """The guard ended the call."""


class Overloaded(GuardError):
    """Too many calls at once; none was made for this request."""

    failure_type = FailureType.OVERLOAD
    default_code = "OVERLOAD"
    status = 503


class CircuitOpen(GuardError):
    """The model failed too often lately; no attempt was made."""

    failure_type = FailureType.PROVIDER
    default_code = "CIRCUIT_OPEN"
    status = 503


class AttemptTimeout(GuardError):
    """The model did not answer in time."""

    failure_type = FailureType.TIMEOUT
    default_code = "ATTEMPT_TIMEOUT"
    status = 504


class RetryExhausted(GuardError):
    """All retries are used up; ``__cause__`` is how the last attempt failed."""

    failure_type = FailureType.PROVIDER
    status = 503

    def __init__(self, message: str = "", *, retry_after_s: float | None = None) -> None:
        super().__init__(message, code="RETRY_EXHAUSTED", retry_after_s=retry_after_s)


class BudgetExhausted(GuardError):
    """The time for this kind of request is used up."""

    failure_type = FailureType.TIMEOUT
    default_code = "BUDGET_EXHAUSTED"
    status = 504


class ProviderError(FlightSvcError):
    """The model, or the way to it, failed.

    :param upstream_status: the HTTP status that the model answered with, if it did.
    :param upstream_code: the error code inside the model's answer, if it gave one.
    """

    #: the error object of the model's answer, where the request was a foreign client's own: for
    #: that client alone and never for a log, as it may quote the request
    upstream_error: dict[str, object] | None = None

    failure_type = FailureType.PROVIDER
    default_code = "PROVIDER_ERROR"
    status = 503

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        retry_after_s: float | None = None,
        upstream_status: int | None = None,
        upstream_code: str | None = None,
    ) -> None:
        super().__init__(message, code=code, retry_after_s=retry_after_s)
        self.upstream_status = upstream_status
        self.upstream_code = upstream_code


class ProviderUnreachable(ProviderError):
    """The connection to the model could not be made, or broke."""

    default_code = "PROVIDER_UNREACHABLE"


class AnswerCut(ProviderUnreachable):
    """The model's answer ended before it was whole."""

    default_code = "AI_ANSWER_INCOMPLETE"


class ProviderTimeout(ProviderError):
    """The model was silent for too long."""

    failure_type = FailureType.TIMEOUT
    default_code = "PROVIDER_TIMEOUT"
    status = 504


class ProviderUnavailable(ProviderError):
    """The model answered with a server error."""

    default_code = "PROVIDER_UNAVAILABLE"


class ProviderRateLimited(ProviderError):
    """The model refuses more calls for now."""

    default_code = "PROVIDER_RATE_LIMITED"


class ProviderRejected(ProviderError):
    """The model refuses this request; asking the same again does not help."""

    default_code = "PROVIDER_REJECTED"
    retryable = False


class AnswerInvalid(ProviderError):
    """The model's answer is empty, malformed, or does not fit."""

    failure_type = FailureType.VALIDATION
    default_code = "AI_MODEL_OUTPUT_MALFORMED"
