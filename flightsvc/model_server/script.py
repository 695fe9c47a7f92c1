"""Which rule a call falls under, with the counting that `nth` and `times` need."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Literal

from flightsvc.model_server.http import Request
from flightsvc.model_server.rules import Behave, Match, Script
from flightsvc.providers.base import Message

Kind = Literal["chat", "workflow", "upload"]


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the model.

    :param document: the request's body, a JSON object; empty for an upload.
    :param body: the same as it came.
    :param bearer: the token it came with.
    :param kind: what it asks for.
    """

    document: dict[str, Any]
    body: bytes
    bearer: str
    kind: Kind = "chat"

    @classmethod
    def of(cls, request: Request, document: dict[str, Any], kind: Kind = "chat") -> Call:
        """A call from its request; ``document`` is the parsed body."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        bearer = token.strip() if scheme.lower() == "bearer" else ""
        return cls(document, request.body, bearer, kind)

    @property
    def key(self) -> str:
        """SHA-256 of the body, hex: equal calls have equal keys. A workflow's ``chat_id`` is left
        out: each call has another one."""
        if self.kind != "workflow":
            return hashlib.sha256(self.body).hexdigest()
        rest = {name: value for name, value in self.document.items() if name != "chat_id"}
        return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()

    @property
    def model(self) -> str:
        """The model that is asked for, or the workflow."""
        return str(self.document.get("flow_id" if self.kind == "workflow" else "model", ""))

    @property
    def parameters(self) -> dict[str, Any]:
        """What a workflow is given."""
        given = self.document.get("parameters")
        return given if isinstance(given, dict) else {}

    @property
    def stream(self) -> bool:
        """Whether a stream is asked for."""
        return self.document.get("stream") is True

    @property
    def messages(self) -> tuple[Message, ...]:
        """The prompt; of messages in parts, the texts. A workflow's parameters are one message."""
        if self.kind == "workflow":
            return (Message("user", json.dumps(_material(self.parameters), ensure_ascii=False)),)
        given = self.document.get("messages")
        return tuple(
            Message(each.get("role", "user"), _text(each.get("content")))
            for each in (given if isinstance(given, list) else [])
            if isinstance(each, dict)
        )

    @property
    def last_user_text(self) -> str:
        """The newest user message, or what the user says to a workflow."""
        if self.kind == "workflow":
            return str(self.parameters.get("AGENT_USER_INPUT", ""))
        return next((each.content for each in reversed(self.messages) if each.role == "user"), "")


@dataclass(slots=True)
class ScriptRunner:
    """A script and how often each of its rules has been looked at and used."""

    script: Script = field(default_factory=Script)
    _fitted: dict[int, int] = field(default_factory=dict)

    def choose(self, call: Call) -> tuple[str, Behave]:
        """The name of the rule that a call falls under (``default`` for none), and its answer."""
        for index, rule in enumerate(self.script.rules):
            if not _fits(rule.match, call):
                continue
            turn = self._fitted[index] = self._fitted.get(index, 0) + 1
            if rule.match.nth is not None and turn not in rule.match.nth:
                continue
            if rule.match.times is not None and turn > rule.match.times:
                continue
            return rule.name or str(index), rule.behave
        return "default", self.script.default


def _fits(match: Match, call: Call) -> bool:
    return (
        (match.kind is None or match.kind == call.kind)
        and (match.model is None or match.model == call.model)
        and (match.stream is None or match.stream == call.stream)
        and (match.bearer is None or match.bearer == call.bearer)
        and (match.last_user_contains is None or match.last_user_contains in call.last_user_text)
        and (match.body_contains is None or match.body_contains.encode() in call.body)
    )


def _material(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters under the names that a prompt has for them."""
    names = {"AGENT_USER_INPUT": "answer", "resume_context": "resume"}
    return {names.get(name, name): value for name, value in parameters.items()}


def _text(content: object) -> str:
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""
