"""JSON Schemas of the models that validate, as an OpenAPI document has them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core import core_schema as core

from flightsvc.settings.table import descriptions

Json = dict[str, Any]
#: what is read, or what is sent
Mode = Literal["validation", "serialization"]
REFERENCE = "#/components/schemas/{model}"


class _Schemas(GenerateJsonSchema):
    """Without titles that only repeat names; with the text over each field and each class."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 (pydantic's name)
        return False

    def model_schema(self, schema: core.ModelSchema) -> Json:
        found = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        found.pop("title", None)
        found["description"] = _first_paragraph(model)
        says = _texts(model)
        for name, field in found.get("properties", {}).items():
            if name in says:
                field.setdefault("description", says[name])
        return found

    def default_schema(self, schema: core.WithDefaultSchema) -> Json:
        """In answers a default stands for what may be missing, and is never sent."""
        if self.mode == "serialization":
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


def schemas(models: Iterable[type[BaseModel]], mode: Mode) -> dict[str, Json]:
    """Name → schema, of the models and of all that they refer to."""
    wanted = [(model, mode) for model in models]
    _, found = models_json_schema(
        wanted, ref_template=REFERENCE, schema_generator=_Schemas
    )
    return dict(found.get("$defs", {}))


def reference(model: type[BaseModel]) -> Json:
    """It as one of the document's schemas."""
    return {"$ref": REFERENCE.format(model=model.__name__)}


def form_schema(fields: Mapping[str, Any], file: str) -> Json:
    """A form with a file.

    :param fields: schema of its other fields.
    :param file: what the file is.
    """
    held = {"type": "string", "format": "binary", "description": file}
    return {
        "type": "object",
        "properties": {"file": held, **fields.get("properties", {})},
        "required": ["file", *fields.get("required", ())],
        "additionalProperties": False,
    }


def event_schema(
    events: Mapping[str, type[BaseModel]], chunks: Iterable[type[BaseModel] | str] = ()
) -> Json:
    """One event of a stream (OpenAPI 3.1 has no word for the whole).

    :param events: name of an event → its data.
    :param chunks: data of events without a name.
    """
    named = [_event({"event": {"const": name}}, data) for name, data in events.items()]
    return {"anyOf": named + [_event({}, data) for data in chunks]}


def _event(name: Json, data: type[BaseModel] | str) -> Json:
    held: Json = {"const": data}
    if not isinstance(data, str):
        held = {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": reference(data),
        }
    return {
        "type": "object",
        "properties": {**name, "data": held},
        "required": [*name, "data"],
    }


def _first_paragraph(model: type[BaseModel]) -> str:
    text = inspect.cleandoc(model.__doc__ or "").partition("\n\n")[0]
    return " ".join(text.split())


def _texts(model: type[BaseModel]) -> dict[str, str]:
    """The ``#:`` lines over each field, also of those that are inherited."""
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if issubclass(kind, BaseModel) and kind.__module__.startswith("flightsvc."):
            try:
                found |= descriptions(kind)
            except OSError:  # made at run time
                continue
    return found
