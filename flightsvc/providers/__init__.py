"""Models, each behind the same small interface (:mod:`flightsvc.providers.base`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flightsvc.errors import SettingsError
from flightsvc.metrics import Metrics
from flightsvc.providers.base import Message, ModelAnswer, ModelFile, ModelRequest, Provider
from flightsvc.providers.chat import ChatEnd, ChatProvider, ChatRequest
from flightsvc.providers.models import Models, make_models
from flightsvc.providers.openai import OpenAIProvider
from flightsvc.providers.simulated import SimulatedProvider
from flightsvc.providers.xingchen import XingChen
from flightsvc.settings import Settings

#: Every provider, by its name in the settings.
PROVIDERS: Mapping[str, Callable[[Settings, Metrics], Provider]] = {
    "openai": OpenAIProvider,
    "simulated": SimulatedProvider,
    "xingchen": XingChen,
}


def make_provider(settings: Settings, metrics: Metrics) -> Provider:
    """The provider that the settings name. It opens no connection before its first call.

    :raises SettingsError: what this provider needs is missing or wrong.
    """
    make = PROVIDERS.get(settings.provider)
    if make is None:
        raise SettingsError(f"provider is unknown; one of: {', '.join(sorted(PROVIDERS))}.")
    return make(settings, metrics)


__all__ = [
    "ChatEnd",
    "ChatProvider",
    "ChatRequest",
    "Message",
    "ModelAnswer",
    "ModelFile",
    "ModelRequest",
    "Models",
    "Provider",
    "make_models",
    "make_provider",
]
