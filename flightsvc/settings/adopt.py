"""The one configuration of a ``FlightSvc``, and the apps that it serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flightsvc.errors import SettingsError
from flightsvc.settings import ENV_PREFIX, Settings, load_settings


def settings_for(
    config: Mapping[str, Any], name: str, *, given: Settings | None, read: Settings | None
) -> Settings:
    """The settings by which an app is served.

    :param config: the app's; ``name`` is what the app is called.
    :param given: what the user handed in; it needs no configuration, and suffers none.
    :param read: what was read before, for another app.
    :raises SettingsError: the sources contradict each other, or a setting is wrong.
    """
    if given is not None:
        beside = [key for key in sorted(config) if key.startswith(ENV_PREFIX)]
        if beside:
            raise SettingsError(
                f"This FlightSvc was handed its settings, so {', '.join(beside)} in app.config of "
                f"{name} would not count: give either."
            )
        return given
    settings = load_settings(config=config)
    if read is not None and settings != read:
        others = [
            ENV_PREFIX + field.upper()
            for field in Settings.model_fields
            if getattr(settings, field) != getattr(read, field)
        ]
        raise SettingsError(
            f"{name} has other settings than this FlightSvc read before: {', '.join(others)}. Make "
            f"a FlightSvc for each app, or close() it before the next app comes."
        )
    return settings
