"""The models of one provider: the one that is asked, and those that may stand in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from flightsvc.errors import SettingsError
from flightsvc.metrics import Metrics
from flightsvc.providers.base import Provider
from flightsvc.providers.openai import OpenAIProvider
from flightsvc.providers.simulated import SimulatedProvider
from flightsvc.providers.xingchen import XingChen
from flightsvc.settings import Settings


@dataclass(frozen=True, slots=True)
class Models:
    """What a worker may ask.

    :param primary: is asked.
    :param by_stage: is asked instead of it by these stages.
    :param smaller: stands in where the checklist says so; None: there is none.
    :param former: is asked by a stage that is rolled back; None: the smaller one.
    """

    primary: Provider
    smaller: Provider | None = None
    former: Provider | None = None
    by_stage: Mapping[str, Provider] = field(default_factory=dict)

    def for_stage(self, stage: str = "", *, rolled_back: bool = False) -> Provider:
        """Whom a stage asks first."""
        usual = self.by_stage.get(stage, self.primary)
        return (rolled_back and (self.former or self.smaller)) or usual

    def close(self) -> None:
        """Give back what they hold."""
        for model in (self.primary, self.smaller, self.former):
            if model is not None:
                model.close()


def _openai(settings: Settings, metrics: Metrics) -> Models:
    def named(model: str) -> Provider | None:
        changed = settings.model_copy(update={"openai_model": model})
        return OpenAIProvider(changed, metrics) if model.strip() else None

    return Models(
        OpenAIProvider(settings, metrics),
        named(settings.openai_small_model),
        named(settings.openai_former_model),
    )


def _simulated(settings: Settings, metrics: Metrics) -> Models:
    def named(model: str) -> Provider:
        return SimulatedProvider(settings, metrics, model)

    return Models(named("simulated"), named("simulated-small"), named("simulated-former"))


def _xingchen(settings: Settings, metrics: Metrics) -> Models:
    all_flows = XingChen(settings, metrics)
    by_stage = {stage: all_flows.of_stage(stage) for stage in settings.stages}
    return Models(all_flows, by_stage=by_stage)


_MODELS: Mapping[str, Callable[[Settings, Metrics], Models]] = {
    "openai": _openai,
    "simulated": _simulated,
    "xingchen": _xingchen,
}


def make_models(settings: Settings, metrics: Metrics) -> Models:
    """The models that the settings name. None opens a connection before its first call.

    :raises SettingsError: what the provider needs is missing or wrong.
    """
    make = _MODELS.get(settings.provider)
    if make is None:
        raise SettingsError(f"provider is unknown; one of: {', '.join(sorted(_MODELS))}.")
    return make(settings, metrics)
