"""A chat as OpenAI's clients have it: the request's own body in, the model's own chunks out.

Beside :meth:`Provider.complete`, which asks with a prompt of ours, this passes on what a foreign
client wrote. It is always asked as a stream; what comes is handed on event by event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from gevent.event import Event

#: Gets each chunk as it comes: a JSON object, the receiver's own.
OnChunk = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What is asked.

    :param body: the JSON object to send; it stays out of ``repr``.
    :param between_bytes_s: longest silence inside the answer, in seconds.
    :param first_byte_s: longest time until the answer begins, in seconds; None: the whole time.
    :param trace_headers: ``traceparent`` and ``tracestate`` to send along, by name.
    :param cancelled: once it is set, by whichever greenlet, the call ends at once.
    """

    body: Mapping[str, Any] = field(repr=False)
    between_bytes_s: float = 30.0
    first_byte_s: float | None = None
    trace_headers: Mapping[str, str] = field(default_factory=dict)
    cancelled: Event | None = None


@dataclass(frozen=True, slots=True)
class ChatEnd:
    """How an answer ended that was not refused.

    :param completion: the whole answer, where the model did not stream but sent one object.
    :param done: whether a stream ended with ``[DONE]``.
    """

    completion: dict[str, Any] | None = None
    done: bool = False


@runtime_checkable
class ChatProvider(Protocol):
    """A provider that foreign clients can talk to. Safe to use from many greenlets at once."""

    @property
    def name(self) -> str:
        """The provider, for metrics, breakers and keys."""

    @property
    def model(self) -> str:
        """The model that the settings name."""

    @property
    def simulated(self) -> bool:
        """Whether no model is asked, and answers are made up."""

    def chat(self, request: ChatRequest, timeout_s: float, on_chunk: OnChunk) -> ChatEnd:
        """Ask once, and hand on each chunk as it comes. Whether they are a whole answer is for
        the caller to see.

        :param timeout_s: longest time for the whole call, in seconds.
        :raises ProviderError: one of its subclasses, the most specific one.
        :raises gevent.GreenletExit: the call was cancelled.
        """

    def list_models(self, timeout_s: float, /) -> Sequence[Mapping[str, Any]]:
        """The models that can be asked, each an object with an ``id``.

        :raises ProviderError: they cannot be told.
        """
