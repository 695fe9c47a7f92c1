"""What stands in for an answer (second article, 3): the fallback actions that need no model.

A stand-in says what it is: ``fallback`` is the action, ``code`` the failure, ``warnings`` what is
not as asked for. ``message`` holds what the user is told, by language, until somebody reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from flightsvc.checklist import Code
from flightsvc.interview.templates import template

#: what of an answer is not as asked for
TRUNCATED, STALE, SMALLER = "input_truncated", "stale_answer", "smaller_model"


class Recalled(Protocol):
    """An answer from before."""

    @property
    def value(self) -> Any: ...
    @property
    def age_s(self) -> float: ...


def marked(
    code: Code, value: Mapping[str, Any], *warnings: str, tell: bool = False
) -> dict[str, Any]:
    """An answer that did not come the usual way.

    :param tell: whether the user is told the code's message with it.
    """
    found = {
        **value,
        "fallback": code.fallback.action,
        "code": code.name,
        "warnings": list(warnings),
    }
    return {**found, "message": messages(code)} if tell and code.message_en else found


def messages(code: Code) -> dict[str, str]:
    """What the user is told, by language."""
    return {"en": code.message_en, "zh": code.message_zh}


def spoken(code: Code, stage: str) -> dict[str, Any] | None:
    """The stand-in of ``template``, ``clarify`` or ``ask_input``; None for other actions."""
    action, params = code.fallback.action, code.fallback.params
    if action == "template":
        texts = template(str(params["template"]), stage)
        said = {"template": params["template"]}
        if texts is not None:
            said["message"] = dict(texts)  # type: ignore[assignment]
            return marked(code, said)
        return marked(code, said, tell=True)
    if action == "clarify":
        return marked(code, {}, tell=True)
    if action == "ask_input":
        return marked(
            code, {name: params[name] for name in ("field", "wait_s") if name in params}, tell=True
        )
    return None


def stale(code: Code, recalled: Recalled) -> dict[str, Any]:
    """The last good answer, with its age."""
    aged = {**recalled.value, "age_s": round(recalled.age_s, 1)}
    return marked(code, aged, STALE, tell=True)
