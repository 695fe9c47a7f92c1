"""What is said to a user whose settings are wrong: the name as written, the fault, the fix."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from flightsvc.errors import SettingsError
from flightsvc.settings.stage import StageSettings, stage_default

Path = tuple[str, ...]
#: says a setting's path as the user wrote it
Spell = Callable[[Path], str]

#: settings whose values are never shown
SECRET = frozenset(
    {
        "alert_smtp_url",
        "alert_webhook_url",
        "alert_wecom_url",
        "api_tokens",
        "database_url",
        "openai_api_key",
        "openai_base_url",
        "operator_tokens",
        "redis_url",
        "xingchen_api_key",
        "xingchen_api_secret",
        "xingchen_base_url",
    }
)

_PLACEHOLDER = re.compile(r"<([a-z0-9_.]+)>")
_SUBJECT = re.compile(r"^(Input|String|Tuple|Value|List|Dictionary|URL) should ")


class Contradictions(ValueError):
    """Settings that contradict each other.

    :param problems: sentences in which ``<name>`` or ``<stages.evaluation.wait_ms>`` stands for
        a setting, so that each can be named as the user wrote it.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__(" ".join(spelled(problem, plain) for problem in problems))
        self.problems = problems


def plain(path: Path) -> str:
    """The path as Python users write it."""
    return ".".join(path)


def spelled(problem: str, spell: Spell) -> str:
    """The sentence with its settings named."""
    return _PLACEHOLDER.sub(lambda found: spell(tuple(found[1].split("."))), problem)


def refusal(problems: list[str]) -> SettingsError:
    """One error for all problems, one a line."""
    if len(problems) == 1:
        return SettingsError(problems[0])
    lines = "".join(f"\n  - {problem}" for problem in problems)
    return SettingsError(f"{len(problems)} settings are wrong:{lines}")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that the user most likely meant; None if none is near."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.65)
    return found[0] if found else None


def explain(error: ValidationError, model: type[BaseModel], spell: Spell) -> list[str]:
    """A sentence for each fault that pydantic found; without any secret value."""
    problems: list[str] = []
    for fault in error.errors(include_url=False):
        cause = fault.get("ctx", {}).get("error")
        if isinstance(cause, Contradictions):
            problems += [spelled(problem, spell) for problem in cause.problems]
        else:
            problems.append(_fault(fault, model, spell))
    return problems


def _fault(fault: ErrorDetails, model: type[BaseModel], spell: Spell) -> str:
    loc = fault["loc"]
    if loc and loc[0] in SECRET:
        loc = loc[:1]  # deeper parts are tokens
    path = tuple(part for part in loc if isinstance(part, str))
    numbers = [part for part in loc if isinstance(part, int)]
    name = spell(path)
    if fault["type"] == "extra_forbidden":
        return _unknown(name, path, model)
    if numbers:
        name += f", value {numbers[0] + 1},"
    must = _SUBJECT.sub("must ", fault["msg"]).removeprefix("Value error, ")
    must = must.partition(", unable to")[0]
    shown = "" if path[0] in SECRET else f" is {_short(fault['input'])}:"
    return f"{name}{shown} {must}{_default(path, model)}"


def _unknown(name: str, path: Path, model: type[BaseModel]) -> str:
    fields = StageSettings.model_fields if len(path) > 1 else model.model_fields
    near = nearest(path[-1], fields)
    hint = f"did you mean {plain((*path[:-1], near))}?" if near else "remove it."
    return f"{name} is no setting: {hint}"


def _default(path: Path, model: type[BaseModel]) -> str:
    """The default, as the way out."""
    if len(path) == 3 and path[0] == "stages":
        value = stage_default(path[1], path[2])
    else:
        value = model.model_fields[path[0]].default
    is_shown = isinstance(value, (int, float, str, tuple)) and value not in ("", ())
    return f" (default {_short(value)})" if is_shown else ""


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, float):
        return f"{value:g}"
    text = str(list(value)) if isinstance(value, tuple) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
