"""A failure in the checklist's words, as a flight remembers it."""

from __future__ import annotations

from flightsvc.checklist import Code
from flightsvc.errors import CheckedFailure, FlightSvcError


def forbids_asking_again(error: BaseException) -> bool:
    """Whether somebody said of this very error that asking again brings nothing; what its class
    says the checklist knows better."""
    return not vars(error).get("retryable", True)


def checked(code: Code, error: BaseException) -> CheckedFailure:
    """The failure that everybody is told; its cause is ``error``.

    Whether it may be asked again is for the checklist to say, unless this very error forbids it.
    """
    known = error if isinstance(error, FlightSvcError) else None
    failure = CheckedFailure(
        code.name,
        str(known) if known else "",
        failure_type=code.failure_type,
        retryable=code.retryable and not forbids_asking_again(error),
        status=code.status,
        retry_after_s=known.retry_after_s if known else None,
    )
    failure.__cause__ = error
    return failure
