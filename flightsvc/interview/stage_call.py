"""The one guarded call behind a question; it runs in the flight's own greenlet."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Generic

from gevent import GreenletExit

from flightsvc.checklist import Code
from flightsvc.errors import CheckedFailure, SkipRetry
from flightsvc.facts import CallFacts
from flightsvc.flight.call import FlightContext
from flightsvc.flight.key import hash_text
from flightsvc.guard import Route, Routes, Target
from flightsvc.interview.progress import LOCKED, RUNNING, WAITING
from flightsvc.interview.question import Ask, Question
from flightsvc.interview.stage import In, Stage
from flightsvc.interview.standins import SMALLER, TRUNCATED, marked
from flightsvc.interview.tools import Tools
from flightsvc.providers.base import ModelRequest, Provider
from flightsvc.tracing import TraceContext

#: a call that begins so long after it was asked for, in s, takes over from somebody
LATE_S = 0.2


@dataclass(eq=False, slots=True)
class StageCall(Generic[In]):
    """What a flight calls: session lock, file, guarded model call, row.

    :param trace: of the caller that began it, as all of the following are.
    :param facts: filled in as the call goes.
    :param keep: writes the row of an answer, before anybody is told of it.
    """

    tools: Tools
    stage: Stage[In]
    session_id: str
    asked: In
    tenant: str
    provider: Provider
    trace: TraceContext
    facts: CallFacts
    keep: Callable[[str, int, dict[str, Any]], None]
    #: when it was asked (monotonic)
    asked_at: float = field(default_factory=time.monotonic)
    #: whether the call was made, and went well
    returned: bool = False

    def __call__(self, ctx: FlightContext) -> dict[str, Any]:
        """Make the call.

        :returns: the value to store.
        :raises FallbackAnswer: something stands in for it.
        :raises FlightSvcError: nobody who waits is told more than its code.
        """
        began = time.monotonic()
        try:
            return self._made(ctx, began)
        except GreenletExit:  # another owner has the flight, or nobody wants it any more …
            if ctx.overdue:  # … or it did not end in its time, and nobody else tells of that
                took_s = time.monotonic() - began
                self.tools.aftermath.overdue(ctx, self.provider, self.facts, duration_s=took_s)
            raise

    def _made(self, ctx: FlightContext, began: float) -> dict[str, Any]:
        """The call and what follows it."""
        tools = self.tools
        tools.watch.called(self.facts)
        question = self._question(self.asked)
        try:
            late = began - self.asked_at > LATE_S
            self._check_session(ctx, late=late, look=late)
            with self._session_lock(ctx):
                value = self._value(ctx)
                self._check_session(ctx, late=late)
                self.keep(ctx.flight_id, ctx.fence, value)
        except GreenletExit:
            raise
        except BaseException as error:
            took_s = time.monotonic() - began
            end = tools.aftermath.failed(
                ctx, question, self.provider, self.facts, error, duration_s=took_s
            )
            raise end from end.__cause__
        finally:
            tools.progress.over(ctx.flight_id)
        tools.aftermath.succeeded(question, value)
        self.returned = True
        return value

    def _check_session(self, ctx: FlightContext, *, late: bool, look: bool = False) -> None:
        """:raises SessionForgotten: it was deleted since it was asked about."""
        keeping = self.tools.keeping
        if ctx.fence and not late:  # the fence is as old as the question
            keeping.check_wanted(self.tenant, self.session_id, ctx.fence)
        else:
            keeping.check_asked(self.tenant, self.session_id, self.asked_at, late=look)

    def _value(self, ctx: FlightContext) -> dict[str, Any]:
        """Where the stage needs a model for it, by a guarded call."""
        known = self.stage.known(self.asked)
        if known is not None:
            return known
        if self.stage.nothing_said(self.asked):
            raise CheckedFailure("AI_INPUT_EMPTY")
        tell = self.tools.progress.tell
        tell(ctx.flight_id, LOCKED)
        asked = self.asked
        if self.tools.files is not None:
            asked = self.stage.filled(asked, self.tools.files)
        self.facts.input_length = sum(map(len, self.stage.texts(asked)))
        tell(ctx.flight_id, WAITING)

        def admitted() -> None:
            tell(ctx.flight_id, RUNNING)
            ctx.mark_running()

        return self.tools.guard.execute(
            self.stage.STAGE,
            self._routes(self._question(asked)),
            facts=self.facts,
            on_admitted=admitted,
            before_retry=lambda: self._check_wanted(ctx),
        )

    def _session_lock(self, ctx: FlightContext) -> AbstractContextManager[object]:
        """One heavy call of a session at a time."""
        policy = self.tools.settings.stage(self.stage.STAGE)
        if not policy.session_lock:
            return nullcontext()
        wait_s = policy.session_lock_wait_ms / 1000
        return self.tools.flights.locks.hold(
            self.session_id, ctx, wait_s=wait_s, tenant=self.tenant
        )

    def _question(self, asked: In) -> Question:
        """It as the aftermath and the routes see it."""
        stage = self.stage

        def shorter(most: int, marker: str) -> Ask | None:
            cut = stage.shortened(asked, most, marker)
            return self._ask(cut) if cut != asked else None

        place = (self.tenant, stage.STAGE, self.session_id, stage.place(asked))
        return Question(stage.STAGE, place, self._ask(asked), shorter)

    def _ask(self, asked: In) -> Ask:
        """One attempt of one model call."""

        def ask(provider: Provider, timeout_s: float) -> dict[str, Any]:
            prompt = self.stage.prompt(asked)
            request = ModelRequest(
                messages=prompt.messages,
                stage=self.stage.STAGE,
                json_answer=True,
                between_bytes_s=self.tools.settings.stage(self.stage.STAGE).between_bytes_ms / 1000,
                trace_headers=self.trace.child().headers,
                parameters=prompt.parameters,
                file=prompt.file,
                user=hash_text("user", self.tenant, self.session_id)[:32],
            )
            return self.stage.read_answer(provider.complete(request, timeout_s))

        return ask

    def _routes(self, question: Question) -> Routes[dict[str, Any]]:
        """Whom to ask, and whom instead, as the failure's code says."""
        provider, smaller = self.provider, self.tools.models.smaller

        def instead(code: Code) -> Route[dict[str, Any]] | None:
            action, params = code.fallback.action, code.fallback.params
            if action == "smaller_model" and smaller is not None and smaller is not provider:
                return _route(smaller, question.ask, code, SMALLER)
            if action == "truncate":
                marker = str(params.get("marker", "[TRUNCATED]"))
                cut = question.shorter(int(params["max_tokens"]), marker)
                return _route(provider, cut, code, TRUNCATED) if cut is not None else None
            return None

        return Routes(Route(_target(provider), lambda s: question.ask(provider, s)), instead)

    def _check_wanted(self, ctx: FlightContext) -> None:
        if ctx.cancelled.is_set():
            raise SkipRetry
        if self.tools.before_retry is not None:
            self.tools.before_retry(self.facts)


def _target(provider: Provider) -> Target:
    return Target(provider.name, provider.model)


def _route(provider: Provider, ask: Ask, code: Code, warning: str) -> Route[dict[str, Any]]:
    """A fallback route, whose answers say that they are from there."""
    tell = warning == TRUNCATED

    def attempt(timeout_s: float) -> dict[str, Any]:
        return marked(code, ask(provider, timeout_s), warning, tell=tell)

    return Route(_target(provider), attempt)
