"""What is wrong with a list, in sentences that name the place and the fix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from flightsvc.checklist.locate import Path
from flightsvc.checklist.merge import Origins
from flightsvc.settings.wording import nearest


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault.

    :param path: the value at fault, or where it is missing.
    :param text: what is wrong and the fix, without the place.
    """

    path: Path
    text: str


def told(problems: Iterable[Problem], origins: Origins) -> str:
    """All problems, in the order of the files."""
    lines = sorted({(place(problem, origins), problem.text) for problem in problems})
    said = [f"{file}:{line}: {text}" for (file, line), text in lines]
    if len(said) == 1:
        return said[0]
    return f"{len(said)} faults in the checklist:" + "".join(f"\n  - {each}" for each in said)


def place(problem: Problem, origins: Origins) -> tuple[str, int]:
    """File and line of a problem."""
    found = origins.near(problem.path)
    return found.file, found.line


def name(path: Path) -> str:
    """A value's name as the file has it; rules count from 1."""
    text = ""
    for part in path:
        text += f" {part + 1}" if isinstance(part, int) else f".{part}" if text else part
    return text


def of_fault(fault: ErrorDetails, at: Path, model: type[BaseModel]) -> Problem:
    """A problem for what pydantic found within the table ``at``."""
    if fault["type"] == "extra_forbidden":
        return _unknown((*at, *fault["loc"]), at, model)
    loc = tuple(part for part in fault["loc"] if not _is_branch(part))
    path: Path = (*at, *loc)
    return Problem(path, f"{name(path)} is {_short(fault['input'])}: {_must(fault)}.")


def _unknown(path: Path, at: Path, model: type[BaseModel]) -> Problem:
    """A field that there is not."""
    is_inner = len(path) > len(at) + 1  # of `state`
    near = None if is_inner else nearest(str(path[-1]), model.model_fields)
    hint = f"did you mean {near}?" if near else "remove it."
    kind = "state change" if is_inner else _kind(at)
    return Problem(path, f"{name(path)} is no field of a {kind}: {hint}")


def _is_branch(part: object) -> bool:
    """Whether a part of a place names only which kind of value was tried."""
    return isinstance(part, str) and (
        "[" in part or part in ("str", "int") or part.startswith(("constrained", "function"))
    )


def _must(fault: ErrorDetails) -> str:
    said = fault["msg"].replace(" after validation", "")
    for subject in ("Input should", "String should", "List should"):
        said = said.replace(subject, "must")
    if fault["type"] == "string_pattern_mismatch":
        return f"{said} (small letters, digits and _)"
    return said[0].lower() + said[1:]


def _kind(at: Path) -> str:
    kinds = {"retry": "retry policy", "fallback": "fallback policy", "alert": "alert policy"}
    return kinds.get(str(at[0]), {"codes": "code", "match": "rule"}.get(str(at[0]), "list"))


def _short(value: object) -> str:
    if isinstance(value, dict):
        return "a table"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
