"""One question that somebody asks, ready to be asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Generic

from flightsvc.errors import FlightSvcError, SessionForgotten
from flightsvc.facts import CallFacts
from flightsvc.flight.key import FlightKey
from flightsvc.flight.result import FlightResult
from flightsvc.flight.state import Role
from flightsvc.interview.keeping import record_of
from flightsvc.interview.stage import In, Stage
from flightsvc.interview.stage_call import StageCall
from flightsvc.interview.tools import Tools
from flightsvc.providers.base import Provider
from flightsvc.tracing import TraceContext

#: roles of answers that were made before, maybe where no row could be written
REPLAYED = (Role.REPLAY, Role.L1)


@dataclass(eq=False, slots=True)
class AskedQuestion(Generic[In]):
    """A question of one stage, in one session.

    :param tools: what it is asked with.
    :param stage: its kind.
    :param provider: whom the stage asks now.
    """

    tools: Tools
    stage: Stage[In]
    session_id: str
    asked: In
    tenant: str
    provider: Provider
    #: what the question is
    key: FlightKey = field(init=False)
    #: makes the same question later, as things then stand
    anew: Callable[[], AskedQuestion[In]] | None = None

    def __post_init__(self) -> None:
        self.key = self.stage.flight_key(
            self.session_id,
            self.asked,
            tenant=self.tenant,
            provider=self.provider.name,
            model=self.provider.model,
        )

    def answer(
        self, trace: TraceContext | None = None, facts: CallFacts | None = None
    ) -> FlightResult:
        """The answer: from a replay, a flight in the air, or by the one call.

        :param trace: the caller's place in its trace; None: a new trace.
        :param facts: filled in with what becomes known of the call, if this caller begins it:
            plain values, since the request may be over before the call is.
        :raises CallFailed: the model could not be asked, or its answer does not fit.
        :raises WaitTimeout: no answer within the stage's patience; the call goes on.
        :raises FlightSvcError: this worker takes no callers now, or Redis is needed and gone.
        """
        trace, facts = trace or TraceContext.new(), facts or CallFacts()
        self._note(trace, facts)
        asked_ms = int(time.time() * 1_000)
        call = StageCall(
            self.tools, self.stage, self.session_id, self.asked, self.tenant, self.provider,
            trace, facts, lambda *made: self.keep(*made, asked_ms=asked_ms),
        )  # fmt: skip
        try:
            result = self.tools.flights.run(self.key, call, queued=True)
        except FlightSvcError as error:
            told = self.tools.aftermath.again(self._place, error)
            if told is None:
                self.tools.aftermath.refused(facts, error, returned=call.returned)
                raise
            result = told
        if result.fallback is not None:
            self._refresh(result)
            return result
        if result.role in REPLAYED and not self._is_kept(result):
            return self.answer(trace, facts)
        return result

    def _is_kept(self, replayed: FlightResult) -> bool:
        """Whether an answer from before may be given; its row is there then, if it can be.

        One from before the session was deleted may not: it is thrown away.
        """
        if self.tools.keeping.knows(replayed.flight_id, replayed.fence):
            return True
        try:
            self.keep(replayed.flight_id, replayed.fence, replayed.value)
        except SessionForgotten:
            if replayed.role == Role.L1:  # Redis may have a newer one by now
                self.tools.flights.forget_here(replayed.flight_id)
            else:
                self.tools.flights.forget(replayed.flight_id)
            return False
        return True

    def keep(
        self, flight_id: str, fence: int, value: dict[str, Any], *, asked_ms: int = 0
    ) -> None:
        """Write an answer's row.

        :param asked_ms: when it was asked, Unix time in ms; 0: nobody knows.
        :raises SessionForgotten: the session was deleted after the question was asked.
        """
        self.tools.keeping.keep(
            record_of(
                self.stage.STAGE,
                self.stage.business_key(self.asked),
                tenant=self.tenant,
                session_id=self.session_id,
                flight_id=flight_id,
                fence=fence,
                value=value,
                asked=self.stage.said(self.asked),
                asked_ms=asked_ms,
            )
        )

    def _refresh(self, stand_in: FlightResult) -> None:
        """Have a new answer asked for, where an older one stands in and the list says so."""
        anew = self.anew
        if anew is not None and self.tools.aftermath.refreshes(stand_in):
            self.tools.refresher.later(self.key.flight_id, lambda: anew().answer())

    @property
    def _place(self) -> tuple[str, ...]:
        """Where in the tenant's sessions it stands."""
        return self.tenant, self.stage.STAGE, self.session_id, self.stage.place(self.asked)

    def _note(self, trace: TraceContext, facts: CallFacts) -> None:
        """What may be known of a question without knowing it."""
        facts.trace_id, facts.session_id = trace.trace_id, self.session_id
        facts.tenant, facts.stage = self.tenant, self.stage.STAGE
        texts = self.stage.texts(self.asked)
        facts.input_length = sum(map(len, texts))
        # each length first, so that no two inputs run together
        whole = "".join(f"{len(text)}:{text}" for text in texts)
        facts.input_hash = sha256(whole.encode()).hexdigest()[:32]
