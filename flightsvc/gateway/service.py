"""The one way in which a foreign client's chat is asked: flight, guard and model joined."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from gevent import GreenletExit

from flightsvc.errors import FlightSvcError, ModulePaused, ProviderError, SkipRetry
from flightsvc.facts import CallFacts, CallWatch, Unwatched
from flightsvc.flight.call import FlightContext
from flightsvc.flight.service import SingleFlight
from flightsvc.gateway.aftermath import Aftermath
from flightsvc.gateway.attempt import Attempt
from flightsvc.gateway.caller import ChatCaller
from flightsvc.gateway.chat import STAGE, Chat, InvalidChat, Sharing
from flightsvc.gateway.heard import Memory
from flightsvc.gateway.key import body_digest, chat_key
from flightsvc.guard import AiCallGuard, Route, Routes, Target, checked
from flightsvc.providers import ChatProvider, Models
from flightsvc.settings import Settings
from flightsvc.store.shared import SharedState
from flightsvc.tracing import TraceContext

#: what a caller of a paused module is told to wait, in s
PAUSED_RETRY_AFTER_S = 30.0
#: Models that the settings do not name share one breaker, so that clients cannot make more.
OTHER_MODELS = "other"
#: Longest time to list the models, in s.
LIST_S = 10.0


class NoDoor(FlightSvcError):
    """The configured provider does not take foreign clients' chats."""

    default_code = "NOT_FOUND"
    status = 404
    retryable = False


@dataclass(slots=True)
class _Call:
    """One guarded call, while it is made."""

    chat: Chat
    provider: ChatProvider
    facts: CallFacts
    trace: TraceContext
    #: it was made, and went well
    returned: bool = False


class ChatGateway:
    """Chats of foreign clients, equal ones as one call. All parts are handed in, made once a
    worker.

    :param watch: hears of every call and of how it failed.
    :param shared: what all workers share; None: this worker alone, and nothing can be paused.
    """

    def __init__(
        self,
        settings: Settings,
        flights: SingleFlight,
        guard: AiCallGuard,
        models: Models,
        watch: CallWatch | None = None,
        *,
        shared: SharedState | None = None,
    ) -> None:
        self._settings = settings
        self._flights = flights
        self._guard = guard
        self._models = models
        primary = models.primary
        self._chats = primary if isinstance(primary, ChatProvider) else None
        self._watch = watch or Unwatched()
        self._shared = shared
        self._memory = Memory()
        #: bodies that callers here wait with: equal ones are kept once, however many ask
        self._bodies: WeakValueDictionary[tuple[str, str], Chat] = WeakValueDictionary()
        self._aftermath = Aftermath(
            guard.checklist, shared, self._watch, content=settings.log_content
        )

    def ask(
        self,
        chat: Chat,
        sharing: Sharing,
        *,
        tenant: str = "",
        trace: TraceContext | None = None,
        facts: CallFacts | None = None,
    ) -> ChatCaller:
        """Join the flight of a chat, or begin it. Nothing waits here.

        :param tenant: who asks; tenants share nothing.
        :param trace: the caller's place in its trace; None: a new trace.
        :param facts: filled in with what becomes known of the call, if this caller begins it.
        :returns: what this caller reads; to be used in a ``with`` block.
        :raises InvalidChat: the chat cannot be asked.
        :raises ModulePaused: the stage or the provider is paused.
        :raises FlightSvcError: this worker takes no callers now.
        """
        provider, chat = self._asked(chat)
        facts = facts or CallFacts()
        facts.stage, facts.tenant = STAGE, tenant
        ignored = self._settings.gateway_ignored_fields
        facts.input_hash = body_digest(chat.body, ignored).hex()[:32]
        facts.input_length = _length(chat.body["messages"])
        key = chat_key(chat, sharing, tenant=tenant, provider=provider.name, ignored=ignored)
        one = self._bodies.setdefault((key.flight_id, key.digest), chat)
        call = _Call(one, provider, facts, trace or TraceContext.new())
        try:
            stream = self._flights.stream(
                key, lambda ctx: self._guarded(ctx, call), replay=sharing.replay, queued=True
            )
        except FlightSvcError as error:
            self._aftermath.refused(facts, error, returned=False)
            raise
        return ChatCaller(
            stream,
            self._memory.place(key.flight_id),
            wants_chunks=chat.stream,
            include_usage=chat.include_usage,
            failed=lambda error: self._aftermath.refused(facts, error, returned=call.returned),
        )

    def models(self) -> Sequence[Mapping[str, Any]]:
        """The models that clients may ask, each an object with an ``id``.

        :raises CheckedFailure: the model's service does not say.
        """
        offered = self._settings.gateway_models
        if offered:
            return [
                {"id": name, "object": "model", "created": 0, "owned_by": "flightsvc"}
                for name in offered
            ]
        provider = self._provider()
        try:
            return provider.list_models(LIST_S)
        except ProviderError as error:  # what it says is about our key or address, not for clients
            raise checked(self._guard.checklist.classify(error, provider.name), error) from error

    @property
    def simulated(self) -> bool:
        """Whether answers are made up."""
        return self._provider().simulated

    def _provider(self) -> ChatProvider:
        if self._chats is None:
            raise NoDoor
        return self._chats

    def _asked(self, chat: Chat) -> tuple[ChatProvider, Chat]:
        """Whom to ask, and for what: a stage that is rolled back asks for the former model."""
        provider, offered = self._provider(), self._settings.gateway_models
        if offered and chat.model not in offered:
            raise _unknown(chat.model)
        if self._shared is None:
            return provider, chat
        watch = self._shared.watch
        if watch.paused(STAGE, provider.name) is not None:
            raise ModulePaused(retry_after_s=PAUSED_RETRY_AFTER_S)
        former = self._models.former or self._models.smaller
        if watch.rolled_back(STAGE) is None or former is None or chat.model != provider.model:
            return provider, chat
        return provider, Chat.read({**chat.body, "model": former.model})

    def _guarded(self, ctx: FlightContext, call: _Call) -> dict[str, Any]:
        """One guarded call for all who ask; it runs in the flight's own greenlet."""
        began, facts = time.monotonic(), call.facts
        attempt = Attempt(self._settings, ctx, call.chat, call.provider, call.trace)
        self._watch.called(facts)
        try:
            answer = self._guard.execute(
                STAGE,
                Routes(Route(self._target(call), attempt)),
                facts=facts,
                on_admitted=ctx.mark_running,
                before_retry=lambda: _check_wanted(ctx, attempt),
                on_attempt=attempt.told_by,
            )
        except GreenletExit:  # another owner has the flight, or nobody wants it any more
            raise
        except BaseException as error:  # nobody who waits is told more than the code
            took_s = time.monotonic() - began
            end = self._aftermath.failed(ctx, call.provider, facts, error, duration_s=took_s)
            raise end from end.__cause__
        self._aftermath.succeeded()
        call.returned = True
        return answer

    def _target(self, call: _Call) -> Target:
        provider, asked = call.provider, call.chat.model
        former = self._models.former or self._models.smaller
        known = (provider.model, former and former.model, *self._settings.gateway_models)
        return Target(provider.name, asked if asked in known else OTHER_MODELS)


def _check_wanted(ctx: FlightContext, attempt: Attempt) -> None:
    """A retry is made only before the first byte, and not where the model said when to come
    back: that is for the clients to hear, who all know how to wait.

    :raises SkipRetry: no retry.
    """
    if ctx.cancelled.is_set() or attempt.emitted or attempt.told_to_wait:
        raise SkipRetry


def _unknown(model: str) -> InvalidChat:
    error = InvalidChat(
        f"The model {model[:100]!r} is not offered here.", "model", code="MODEL_NOT_FOUND"
    )
    error.status = 404
    return error


def _length(value: Any) -> int:
    """Length of all texts inside, in characters."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_length, value.values()))
    return sum(map(_length, value)) if isinstance(value, list) else 0
