"""Every setting: one default, its unit in the name, all checked together at start.

Sources, the first wins: a Flask app's ``app.config`` and the environment (``FLIGHTSVC_…``, nested
names joined by ``__``), the TOML file named by ``FLIGHTSVC_CONFIG``, the defaults. ``Settings(…)``
itself reads nothing but its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flightsvc.settings.model import Settings
from flightsvc.settings.stage import STAGE_DEFAULTS, StageSettings

#: what every variable of the service begins with
ENV_PREFIX = "FLIGHTSVC_"

__all__ = ["ENV_PREFIX", "STAGE_DEFAULTS", "Settings", "StageSettings", "load_settings"]


def load_settings(
    environ: Mapping[str, str] | None = None, config: Mapping[str, Any] | None = None
) -> Settings:
    """The settings of this process.

    :param environ: the environment; None for ``os.environ``.
    :param config: of a Flask app; wins over the environment, under the same names. Values are
        texts, as there, or Python's own numbers, lists and dicts; None: not given.
    :raises SettingsError: a name is unknown, a value wrong, the file unreadable, or settings
        contradict each other; the message names each as the user wrote it, and the fix.
    """
    from flightsvc.settings.sources import load  # library users need not pay for its imports

    return load(environ, config)
