"""A model for trying things out: made-up answers, always the same for the same request.

Every answer says that it is simulated, in its text and in :class:`ModelAnswer`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gevent

from flightsvc.errors import ProviderTimeout
from flightsvc.metrics import Metrics
from flightsvc.providers.base import Message, ModelAnswer, ModelFile, ModelRequest, measured
from flightsvc.providers.chat import ChatEnd, ChatRequest, OnChunk
from flightsvc.providers.file_sketches import demeanor_sketch, extraction_sketch
from flightsvc.providers.simulated_chat import chat_chunks
from flightsvc.providers.sketches import evaluation_sketch, follow_up_sketch, plain_sketch
from flightsvc.settings import Settings

#: The prompt and a seed made from it → the text that the model would say.
Sketch = Callable[[tuple[Message, ...], int], str]

#: What is made up for each stage; a stage that is not listed gets :func:`plain_sketch`.
SKETCHES: Mapping[str, Sketch] = {
    "evaluation": evaluation_sketch,
    "follow_up": follow_up_sketch,
    "extraction": extraction_sketch,
    "demeanor": demeanor_sketch,
}


class SimulatedProvider:
    """Answers after ``simulated_latency_ms``, from the prompt alone.

    :param model: the name that it goes by; they all say the same.
    """

    name = "simulated"
    simulated = True

    def __init__(self, settings: Settings, metrics: Metrics, model: str = "simulated") -> None:
        self.model = model
        self._latency_s = settings.simulated_latency_ms / 1000
        self._metrics = metrics

    def complete(self, request: ModelRequest, timeout_s: float) -> ModelAnswer:
        """Think for the configured time, then answer.

        :raises ProviderTimeout: the thinking would take longer than ``timeout_s``; after that time.
        """
        with measured(self._metrics, self):
            gevent.sleep(min(self._latency_s, max(timeout_s, 0)))
            if self._latency_s >= timeout_s:
                raise ProviderTimeout("The simulated model did not answer in time.")
            return ModelAnswer(simulated_text(request), self.model, simulated=True)

    def chat(self, request: ChatRequest, timeout_s: float, on_chunk: OnChunk) -> ChatEnd:
        """Answer a foreign client's chat in pieces, over the configured time.

        :raises ProviderTimeout: it would take longer than ``timeout_s``; after that time.
        """
        with measured(self._metrics, self):
            chunks = list(chat_chunks(request.body, self.model))
            pause_s = self._latency_s / len(chunks)
            for number, chunk in enumerate(chunks, 1):
                gevent.sleep(pause_s)
                if number * pause_s >= timeout_s:
                    raise ProviderTimeout("The simulated model did not answer in time.")
                on_chunk(chunk)
            return ChatEnd(done=True)

    def list_models(self, _timeout_s: float) -> Sequence[Mapping[str, Any]]:
        """The one that there is."""
        return [{"id": self.model, "object": "model", "created": 0, "owned_by": "flightsvc"}]

    def close(self) -> None:
        """Nothing is held."""


def simulated_text(request: ModelRequest) -> str:
    """What the simulated model says to a request."""
    sketch = SKETCHES.get(request.stage, plain_sketch)
    return sketch(request.messages, seed(request.messages, request.file))


def seed(messages: tuple[Message, ...], file: ModelFile | None = None) -> int:
    """A number that stands for the whole prompt, the same in every process."""
    digest = hashlib.sha256(b"" if file is None else file.data)
    for message in messages:
        for part in (message.role, message.content):
            data = part.encode("utf-8", "replace")
            digest.update(len(data).to_bytes(8, "big") + data)
    return int.from_bytes(digest.digest()[:8], "big")
