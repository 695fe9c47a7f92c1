"""The OpenAPI 3.1 document of all routes of ours that an app serves, at whatever prefix.

It is made from what each route says of itself (:mod:`flightsvc.web.openapi_terms`), the app's own
map of addresses, the schemas that read and write, and the checklist in force.
"""

from __future__ import annotations

import re
from functools import lru_cache

from flask import Flask
from pydantic import BaseModel

from flightsvc._version import __version__
from flightsvc.checklist import Checklist
from flightsvc.web import openapi_words as words
from flightsvc.web.openapi_operations import Served, Writer
from flightsvc.web.openapi_schemas import Json, schemas
from flightsvc.web.openapi_shapes import Problem
from flightsvc.web.openapi_terms import Form, Operation, Shape, SignIn
from flightsvc.web.routes import operations_of

VERSION = "3.1.1"

_PART = re.compile(r"<(?:[^:<>]+:)?(\w+)>")


def served(app: Flask) -> list[Served]:
    """Everything of ours that the app serves and that says what it is."""
    found = []
    for rule in app.url_map.iter_rules():
        for method, operation in operations_of(app.view_functions.get(rule.endpoint)).items():
            path = _PART.sub(r"{\1}", rule.rule)
            found.append(Served(path, method, operation, rule.endpoint))
    return found


def document(app: Flask, checklist: Checklist, *, base: str, sign_in: SignIn) -> Json:
    """The whole document.

    :param base: where the app is mounted: what its server takes off each address.
    :param sign_in: how tenants do.
    """
    everything = served(app)
    known = components(frozenset(each.operation for each in everything))
    writer = Writer(everything, checklist, sign_in, known)
    paths: dict[str, Json] = {}
    for each in everything:
        paths.setdefault(each.path, {})[each.method.lower()] = writer.operation(each)
    tags = {each.operation.tag for each in everything}
    return {
        "openapi": VERSION,
        "info": {"title": words.TITLE, "version": __version__, "description": words.ABOUT},
        "servers": [{"url": base or "/"}],
        "tags": [
            {"name": name, "description": words.TAGS.get(name, "")}
            for name in [*(t for t in words.TAGS if t in tags), *sorted(tags - {*words.TAGS})]
        ],
        "paths": dict(sorted(paths.items())),
        "components": {
            "securitySchemes": {
                name: {"type": "http", "scheme": "bearer", "description": text}
                for name, text in words.TOKENS.items()
            },
            "responses": writer.responses,
            "schemas": writer.schemas,
        },
    }


@lru_cache(maxsize=16)
def components(operations: frozenset[Operation]) -> dict[str, Json]:
    """All schemas that the operations are about."""
    read: dict[type[BaseModel], None] = {}
    sent: dict[type[BaseModel], None] = {Problem: None}
    for each in operations:
        body = each.body
        if body is not None:
            model = body.fields if isinstance(body, Form) else body.schema
            read |= {model: None} if model else {}
        for answer in each.answers:
            shapes = [m for shape in answer.bodies.values() for m in _models(shape)]
            chunks = [each for each in answer.chunks if not isinstance(each, str)]
            sent |= dict.fromkeys([*shapes, *answer.events.values(), *chunks])
        sent |= {each.faults.schema: None} if each.faults.schema else {}
    found = {**schemas(read, "validation"), **schemas(sent, "serialization")}
    return dict(sorted(found.items()))


def _models(shape: Shape) -> tuple[type[BaseModel], ...]:
    if isinstance(shape, tuple):
        return shape
    return (shape,) if isinstance(shape, type) else ()
