"""What is known of one guarded call: captured from its first caller, filled in as it runs.

A flight's call runs in a greenlet of its own and may outlive the request that began it. So it is
handed this plain object, never a request or its context. The caller sets who asked; the invoker
what is asked; the guard how the call went. The log and the alerts read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True, kw_only=True)
class CallFacts:
    """The facts of one call. Empty text: not known, or there is none.

    No prompt and no answer may stand in it: what it holds is logged.
    """

    #: W3C trace of the first caller, 32 hex digits
    trace_id: str = ""
    #: the interview
    session_id: str = ""
    #: whose interview it is
    tenant: str = ""
    #: the kind of request
    stage: str = ""
    #: equal for equal input texts, 32 hex digits
    input_hash: str = ""
    #: length of the input texts, in characters
    input_length: int = 0
    #: attempts after the first, on the primary route
    retry_count: int = 0
    #: what stood in for the model's answer
    fallback_action: str = ""
    #: code of the failure, as the checklist names it
    code: str = ""
    #: code of the last attempt's failure, where ``code`` says that the retries are used up
    cause: str = ""
    #: equal for failures of the same kind at the same place, 16 hex digits
    fingerprint: str = ""
    #: what is not as asked for in an answer (a truncated input, …), as short words
    warnings: list[str] = field(default_factory=list)


class CallWatch(Protocol):
    """Hears of guarded calls. Never raises and never waits."""

    def called(self, facts: CallFacts) -> None:
        """A guarded call begins."""

    def failed(self, facts: CallFacts, *, flight_id: str) -> None:
        """It failed; ``facts.code`` says how."""


class Unwatched:
    """Nobody hears of any call."""

    def called(self, facts: CallFacts) -> None:
        """See :class:`CallWatch`."""

    def failed(self, facts: CallFacts, *, flight_id: str) -> None:
        """See :class:`CallWatch`."""
