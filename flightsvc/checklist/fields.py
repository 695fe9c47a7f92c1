"""The fields of a checklist file as Markdown tables: ``python -m flightsvc.checklist.fields``.

docs/checklist.md holds its output between two markers; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from flightsvc.checklist.schema import (
    AlertEntry,
    CodeEntry,
    FallbackEntry,
    ListEntry,
    MatchEntry,
    RetryEntry,
    StateEntry,
)
from flightsvc.settings.table import descriptions

TABLES: tuple[type[BaseModel], ...] = (
    ListEntry,
    RetryEntry,
    FallbackEntry,
    AlertEntry,
    CodeEntry,
    StateEntry,
    MatchEntry,
)


def tables() -> str:
    """One table for each kind of entry."""
    return "\n\n".join("\n".join(_table(model)) for model in TABLES) + "\n"


def _table(model: type[BaseModel]) -> Iterator[str]:
    yield f"{(model.__doc__ or '').strip()}:"
    yield ""
    yield "| field | default | what it says |"
    yield "|---|---|---|"
    says = descriptions(model)
    for name, field in model.model_fields.items():
        if field.default is PydanticUndefined:
            default = "needed"
        elif field.default is None:
            default = ""
        else:
            default = f"`{str(field.default).lower()}`"
        choices = list(_choices(field.annotation))
        one_of = f": {', '.join(f'`{choice}`' for choice in choices)}" if choices else ""
        # a description that explains the choices names them already
        said = says[name] + ("" if all(f"`{each}`" in says[name] for each in choices) else one_of)
        yield f"| `{name}` | {default} | {said} |"


def _choices(annotation: Any) -> Iterator[str]:
    """The words that a field may hold, if only some may."""
    if get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation))
        return
    for inner in get_args(annotation):
        yield from _choices(inner)


if __name__ == "__main__":
    print(tables(), end="")
