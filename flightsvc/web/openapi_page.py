"""An OpenAPI document as one HTML page that loads nothing and runs nothing."""

from __future__ import annotations

from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from flightsvc.web.openapi_schemas import Json
from flightsvc.web.openapi_words import HEADERS

_STYLE = files("flightsvc.web").joinpath("openapi.css").read_text(encoding="utf-8")
_STYLE_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()

#: for the page's response
CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
    f"frame-ancestors 'none'"
)


class Row(NamedTuple):
    """A field, a parameter or a header.

    :param kind: what it holds.
    """

    name: str
    kind: Markup
    says: Markup
    required: bool


def render_page(document: Json) -> str:
    """The page of a document."""
    groups: dict[str, list[Json]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            groups[operation["tags"][0]].append(
                {"path": path, "method": method.upper(), "it": operation}
            )
    return _template().render(
        style=Markup(_STYLE),
        document=document,
        groups=groups,
        about={tag["name"]: prose(tag["description"]) for tag in document["tags"]},
        base=document["servers"][0]["url"].rstrip("/"),
        prose=prose,
        kind=kind,
        problem=lambda answer: problem(answer, document["components"]["responses"]),
        rows=rows,
        parameters=parameters,
        headers=headers(),
    )


def prose(text: str) -> Markup:
    """Markdown as it is used in the document: paragraphs, lists, `code`."""
    blocks: list[Markup] = []
    for block in text.strip().split("\n\n"):
        head, *points = ("\n" + block).split("\n- ")
        if head.strip():
            blocks.append(Markup("<p>{}</p>").format(_line(head)))
        if points:
            items = Markup("").join(Markup("<li>{}</li>").format(_line(p)) for p in points)
            blocks.append(Markup("<ul>{}</ul>").format(items))
    return Markup("").join(blocks)


def _line(text: str) -> Markup:
    parts = " ".join(text.split()).split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if n % 2 else escape(part)
        for n, part in enumerate(parts)
    )


def rows(schema: Json) -> list[Row]:
    """The fields of an object."""
    required = schema.get("required", ())
    return [
        Row(name, kind(field), _line(field.get("description", "")), name in required)
        for name, field in schema.get("properties", {}).items()
    ]


def parameters(operation: Json) -> list[Row]:
    """What a request says beside its body."""
    return [
        Row(
            each["name"],
            Markup("{}, {}").format(each["in"], kind(each["schema"])),
            _line(each["description"]),
            each.get("required", False),
        )
        for each in operation.get("parameters", ())
    ]


def headers() -> list[Row]:
    """All headers that answers have."""
    return [
        Row(name, kind(dict(header.schema)), _line(header.says), False)
        for name, header in HEADERS.items()
    ]


def problem(answer: Json, shared: Json) -> Markup:
    """The codes of a problem that several routes have, with where they are explained."""
    name = answer["$ref"].rpartition("/")[2]
    said = shared[name]["description"].partition("\n\n")[2]
    codes = [line.split("`")[1] for line in said.splitlines()]
    shown = Markup(", ").join(Markup("<code>{}</code>").format(code) for code in codes)
    return Markup('{} <a href="#{}">more</a>').format(shown, name)


def kind(schema: Json) -> Markup:
    """What a value is, in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return Markup('<a href="#{0}">{0}</a>').format(name)
    if "anyOf" in schema:
        return Markup(" or ").join(dict.fromkeys(map(kind, schema["anyOf"])))
    if "const" in schema:
        return Markup("<code>{}</code>").format(schema["const"])
    if "enum" in schema:
        return Markup(", ").join(Markup("<code>{}</code>").format(each) for each in schema["enum"])
    if schema.get("type") == "array":
        return Markup("list of {}").format(kind(schema.get("items", {})))
    return Markup("{}{}").format(schema.get("type", "anything"), _bounds(schema))


def _bounds(schema: dict[str, Any]) -> Markup:
    """Between what a number lies, how long a text is, what it looks like."""
    said = []
    for low, high, unit in (("minimum", "maximum", ""), ("minLength", "maxLength", " characters")):
        if low in schema or high in schema:
            said.append(f" {schema.get(low, '')}…{schema.get(high, '')}{unit}")
    if "format" in schema:
        said.append(f" ({schema['format']})")
    if "default" in schema and schema["default"] != "":
        said.append(f", default {schema['default']}")
    pattern = Markup("")
    if "pattern" in schema:
        pattern = Markup(" <code>{}</code>").format(schema["pattern"])
    return escape("".join(said)) + pattern


@lru_cache(maxsize=1)
def _template() -> Template:
    source = files("flightsvc.web").joinpath("openapi.jinja").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source)
