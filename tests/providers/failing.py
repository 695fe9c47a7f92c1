"""Calls that fail, and what their errors must not give away."""

from __future__ import annotations

import pytest

from flightsvc.errors import ProviderError
from flightsvc.providers import ModelRequest, Provider

SECRET = "sk-secret-key"
KEY = "app-key-of-xingchen"
PROMPT = "the prompt, in confidence"
SAID = "what the model said, in confidence"


def failure(provider: Provider, request: ModelRequest) -> ProviderError:
    """The error that a call ends with; its words give nothing away."""
    with pytest.raises(ProviderError) as caught:
        provider.complete(request, 10)
    error: BaseException | None = caught.value
    while error is not None:
        for word in (SECRET, KEY, PROMPT, SAID):
            assert word not in f"{error} {error!r}"
        error = error.__cause__
    return caught.value
