"""Whether an answer is one that ``/openapi.json`` has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

Json = dict[str, Any]


class Declared:
    """What a document says of its routes."""

    def __init__(self, document: Json) -> None:
        self.document = document

    @property
    def operations(self) -> dict[tuple[str, str], Json]:
        """(method, path) → operation."""
        return {
            (method.upper(), path): operation
            for path, methods in self.document["paths"].items()
            for method, operation in methods.items()
        }

    @property
    def problems(self) -> set[tuple[int, str]]:
        """(status, code) of all problems that any route can answer with, in whatever form."""
        found = set()
        for method, path in self.operations:
            for status in self.operations[method, path]["responses"]:
                content = self.answer(method, path, int(status)).get("content", {})
                codes = [code for held in content.values() for code in _codes(held["schema"])]
                found |= {(int(status), code.upper()) for code in codes}
        return found

    def answer(self, method: str, path: str, status: int) -> Json:
        """What it says of an answer with this status."""
        answers = self.operations[method, path]["responses"]
        assert str(status) in answers, f"{method} {path}: {status} is not declared"
        found: Json = answers[str(status)]
        reference = found.get("$ref")
        if reference is None:
            return found
        shared: Json = self.document["components"]["responses"][reference.rpartition("/")[2]]
        return shared

    def check(
        self, method: str, path: str, status: int, headers: Mapping[str, str], body: bytes
    ) -> None:
        """The answer is one of those.

        :param path: as the document has it.
        """
        told = self.answer(method, path, status)
        for name, header in told.get("headers", {}).items():
            assert name in headers or not header.get("required"), f"{name} is missing"
            if name in headers:
                self.fits(_as(header["schema"]["type"], headers[name]), header["schema"])
        content = told.get("content", {})
        if not content:
            assert body == b""
            return
        mimetype = headers["Content-Type"].partition(";")[0]
        assert mimetype in content, f"{mimetype} is not declared"
        if mimetype.endswith("json"):
            self.fits(json.loads(body), content[mimetype]["schema"])
        if mimetype == "text/event-stream":
            for event in body.decode().strip().split("\n\n"):
                self._event(event, content[mimetype]["schema"])

    def fits(self, value: object, schema: Json) -> None:
        """A value is as a schema of the document says."""
        whole = {**schema, "components": self.document["components"]}
        Draft202012Validator(whole).validate(value)

    def _event(self, text: str, schema: Json) -> None:
        event = dict(line.split(": ", 1) for line in text.splitlines())
        name = {"const": event["event"]} if "event" in event else None
        kinds = [
            each["properties"]["data"]
            for each in schema["anyOf"]
            if each["properties"].get("event") == name
        ]
        if {"const": event["data"]} not in kinds:
            held = [kind["contentSchema"] for kind in kinds if "contentSchema" in kind]
            self.fits(json.loads(event["data"]), {"anyOf": held})


def _codes(schema: Json) -> list[str]:
    """All that a problem can have, which may be told in the form of OpenAI's API."""
    found: list[str] = []
    for each in schema.get("anyOf", [schema]):
        fields = each.get("properties", {})
        fields = fields.get("error", {}).get("properties", fields)
        found += fields.get("code", {}).get("enum", [])
    return found


def _as(kind: str, value: str) -> object:
    return int(value) if kind == "integer" else value
