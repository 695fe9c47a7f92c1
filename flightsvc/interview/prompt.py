"""What a stage asks a model, whatever way there is to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from flightsvc.providers.base import Message, ModelFile


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt.

    :param messages: for a model that reads messages.
    :param parameters: the same by name, for a workflow that has instructions of its own.
    :param file: what the question is about, where it is about a file.
    """

    messages: tuple[Message, ...]
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    file: ModelFile | None = None


def material(instructions: str, given: Mapping[str, object]) -> tuple[Message, ...]:
    """Instructions, and what they are about as JSON: no text can close its own quotation."""
    return (
        Message("system", instructions),
        Message("user", json.dumps(given, ensure_ascii=False)),
    )
