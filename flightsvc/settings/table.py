"""The settings as a Markdown table: ``python -m flightsvc.settings.table``.

README.md holds its output between two markers; a test compares them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from flightsvc.settings import ENV_PREFIX, STAGE_DEFAULTS, Settings, StageSettings
from flightsvc.settings.stage import stage_default

_FIELD = re.compile(r"((?:^    #: .*\n)+)^    (\w+):", re.MULTILINE)


def table() -> str:
    """Both tables: the settings, and those of each stage."""
    return "\n".join([*_settings(), "", *_stages()]) + "\n"


def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """The ``#:`` lines over each field."""
    found = _FIELD.findall(inspect.getsource(model))
    return {
        name: " ".join(line.strip().removeprefix("#: ") for line in lines.splitlines())
        for lines, name in found
    }


def _settings() -> Iterator[str]:
    yield "| variable | default | what it does |"
    yield "|---|---|---|"
    says = descriptions(Settings)
    for name, field in Settings.model_fields.items():
        if name != "stages":
            yield _row(f"`{ENV_PREFIX}{name.upper()}`", _default(field), says[name])


def _stages() -> Iterator[str]:
    stages = list(STAGE_DEFAULTS)
    yield _row(f"`{ENV_PREFIX}STAGES__…__`", *stages, "what it does")
    yield "|---" * (len(stages) + 2) + "|"
    says = descriptions(StageSettings)
    for name in StageSettings.model_fields:
        values = [_value(stage_default(stage, name)).strip("`") for stage in stages]
        yield _row(f"`{name.upper()}`", *values, says[name])


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    return _value(getattr(value, "get_secret_value", lambda: value)())


def _value(value: object) -> str:
    """The default as a user writes it in a variable; empty for none."""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        return f"`{value:g}`"
    if isinstance(value, tuple):
        return f"`{list(value)}`"
    return f"`{value}`" if value or value == 0 else ""


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    print(table(), end="")
