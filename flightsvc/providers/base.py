"""What a model is to the rest of the service: messages in, one whole answer out.

A provider makes *one* request to one model each time it is asked. It never retries, queues or
remembers: that is the guard's and the flight's work. An answer that is not whole is an error.

What foreign clients ask is passed on in chunks by a second method, ``chat``: see ``chat.py``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from flightsvc.errors import ProviderError
from flightsvc.metrics import PROVIDER_ERRORS, PROVIDER_TIME, Metrics

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt. The text stays out of ``repr``, and so out of logs."""

    role: Role
    content: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file that a question is about. Its content stays out of ``repr``.

    :param name: as a model may see it; never what its sender called it.
    :param mime: its type, by content.
    """

    name: str
    mime: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What is asked of a model.

    :param messages: the prompt, oldest message first; at least one.
    :param stage: the kind of request, as in the settings (``evaluation``, …).
    :param json_answer: the answer has to be one JSON object.
    :param between_bytes_s: longest silence inside the answer, in seconds.
    :param first_byte_s: longest time until the answer begins, connecting included, in seconds;
        None: the whole time. A model that does not stream sends its first byte when it has
        thought to the end, so a shorter limit is for streams.
    :param trace_headers: ``traceparent`` and ``tracestate`` to send along, by name.
    :param parameters: the prompt by name, for workflows that have instructions of their own.
    :param file: what the question is about; a model that cannot look at it has its text in the
        messages.
    :param user: tells users apart for the model's owner; shows nothing of who it is.
    """

    messages: tuple[Message, ...]
    stage: str
    json_answer: bool = True
    between_bytes_s: float = 30.0
    first_byte_s: float | None = None
    trace_headers: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    file: ModelFile | None = None
    user: str = ""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A whole answer.

    :param text: what the model said; never blank. It stays out of ``repr``.
    :param model: the model that answered, by its own word.
    :param simulated: no model was asked; the answer is made up.
    :param usage: tokens by kind (``prompt_tokens``, …), where the model counts them.
    """

    text: str = field(repr=False)
    model: str
    simulated: bool
    usage: Mapping[str, int] | None = None


class Provider(Protocol):
    """One model, however it is reached. Safe to use from many greenlets at once."""

    @property
    def name(self) -> str:
        """The provider, for metrics, breakers and keys: ``openai``, ``simulated``, ``xingchen``."""

    @property
    def model(self) -> str:
        """The model that is asked, as the settings name it."""

    def complete(self, request: ModelRequest, timeout_s: float) -> ModelAnswer:
        """Ask once and wait for the whole answer.

        :param timeout_s: longest time for the whole call, in seconds, however the answer drips.
        :raises ProviderError: one of its subclasses, the most specific one.
        """

    def close(self) -> None:
        """Give back what the provider holds; connections, mostly."""


@contextmanager
def measured(metrics: Metrics, provider: Provider) -> Iterator[None]:
    """Time one call and count its failure, under the configured model's name.

    A call that is killed says nothing about the model, so it leaves no trace here.
    """
    started = time.perf_counter()
    labels = {"provider": provider.name, "model": provider.model}
    try:
        yield
    except ProviderError as error:
        metrics.count(PROVIDER_ERRORS, code=error.code, **labels)
        metrics.time(PROVIDER_TIME, time.perf_counter() - started, **labels)
        raise
    metrics.time(PROVIDER_TIME, time.perf_counter() - started, **labels)
