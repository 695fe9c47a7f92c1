"""From a model's text to a checked result.

Models wrap their JSON in code fences or in a sentence or two; that much is tolerated. What then
does not fit its schema is :class:`~flightsvc.errors.AnswerInvalid`, a failure, and never stored.
Messages name fields and reasons, never the text itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from flightsvc.errors import AnswerInvalid

#: Longest text that is looked at, in characters; an evaluation is a thousandth of it.
MAX_TEXT = 1_000_000
#: Places in the text where an object may begin that are tried before giving up.
MAX_STARTS = 50

Result = TypeVar("Result", bound=BaseModel)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("one name twice in an object")
    return found


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_refuse_duplicates)


def read_result(text: str, schema: type[Result]) -> Result:
    """The result that a model's text holds.

    :param text: everything that the model said.
    :param schema: what the JSON object in it has to fit.
    :raises AnswerInvalid: the text is empty, holds no JSON object, or one that does not fit.
    """
    found = find_object(text)
    try:
        return schema.model_validate(found)
    except ValidationError as error:
        raise AnswerInvalid(f"The model's answer does not fit: {_reasons(error)}.") from None


def find_object(text: str) -> dict[str, Any]:
    """The one JSON object in a text.

    Two objects are as bad as none: which of them the model means nobody knows, and one of them
    may be the candidate's, quoted.

    :raises AnswerInvalid: there is none, or more than one.
    """
    if not text.strip():
        raise AnswerInvalid("The model's answer is empty.")
    if len(text) > MAX_TEXT:
        raise AnswerInvalid(f"The model's answer is longer than {MAX_TEXT} characters.")
    objects = list(_objects(text))
    if len(objects) != 1:
        count = "no" if not objects else "more than one"
        raise AnswerInvalid(f"The model's answer holds {count} JSON object.")
    return objects[0]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a text, outermost only, in order."""
    start = text.find("{")
    for _ in range(MAX_STARTS):
        if start < 0:
            return
        try:
            found, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield found
        start = text.find("{", end)


def _reasons(error: ValidationError) -> str:
    """Up to three reasons, in the schema's words: an unknown field's name is the model's text."""
    reasons = []
    for detail in error.errors(include_url=False, include_input=False, include_context=False)[:3]:
        if detail["type"] == "extra_forbidden":
            reasons.append("a field that the schema does not know")
        else:
            place = ".".join(str(part) for part in detail["loc"]) or "the object"
            reasons.append(f"{place}: {detail['msg']}")
    return "; ".join(reasons)
