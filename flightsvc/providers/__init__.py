"""Models, each behind the same small interface (:mod:`flightsvc.providers.base`)."""

from __future__ import annotations

from flightsvc.metrics import Metrics
from flightsvc.providers.base import Message, ModelAnswer, ModelFile, ModelRequest, Provider
from flightsvc.providers.chat import ChatEnd, ChatProvider, ChatRequest
from flightsvc.providers.models import Models, make_models
from flightsvc.settings import Settings


def make_provider(settings: Settings, metrics: Metrics) -> Provider:
    """The provider that the settings name. It opens no connection before its first call.

    :raises SettingsError: what this provider needs is missing or wrong.
    """
    return make_models(settings, metrics).primary


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
