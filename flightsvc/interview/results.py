"""From a model's text to a checked result.

Models wrap their JSON in code fences or in a sentence or two, and write it with single quotes or a
comma too many; that much is mended (:mod:`flightsvc.interview.repair`). What then does not fit
its schema is :class:`~flightsvc.errors.AnswerInvalid`, a failure, and never stored. Messages name
fields and reasons, never the text itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from flightsvc.errors import AnswerInvalid
from flightsvc.interview.repair import MAX_SCANNED, NotRepairable, Region, region_at, repaired

#: Longest text that is looked at, in characters; an evaluation is a thousandth of it.
MAX_TEXT = 1_000_000
#: Places in the text where an object may begin that are tried before giving up.
MAX_STARTS = 50

#: a brace behind which an object may begin: its end, or a name and a colon
_START = re.compile(
    r"""\{(?=\s*+(?:\}|"[^"\\]*+(?:\\.[^"\\]*+)*+"\s*+:|'[^'{\n]{0,60}'\s*+:|“[^”{\n]{0,60}”\s*+:"""
    r"""|[^\W\d]\w{0,60}+\s*+:))""",
    re.DOTALL,
)

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
    found = find_object(text, schema.model_fields)
    try:
        return schema.model_validate(found)
    except ValidationError as error:
        raise AnswerInvalid(f"The model's answer does not fit: {_reasons(error)}.") from None


def find_object(text: str, fields: Collection[str] = ()) -> dict[str, Any]:
    """The one JSON object in a text.

    Two objects are as bad as none: which of them the model means nobody knows, and one of them
    may be the candidate's, quoted. For the same reason nothing is looked for inside an object that
    is broken: what stands there whole may be a quotation.

    :param fields: names that the wanted object has; broken objects without any are passed over.
    :raises AnswerInvalid: there is none, or more than one.
    """
    if not text.strip():
        raise AnswerInvalid("The model's answer is empty.")
    if len(text) > MAX_TEXT:
        raise AnswerInvalid(f"The model's answer is longer than {MAX_TEXT} characters.")
    try:
        objects = list(_objects(_unfenced(text), fields))
    except NotRepairable:
        raise AnswerInvalid("The model's answer holds no JSON object that is whole.") from None
    if len(objects) != 1:
        count = "no" if not objects else "more than one"
        raise AnswerInvalid(f"The model's answer holds {count} JSON object.")
    return objects[0]


def _unfenced(text: str) -> str:
    """The text without a code fence at its end."""
    bare = text.rstrip()
    return f"{bare[:-3]}\n" if bare.endswith("```") else text


def _objects(text: str, fields: Collection[str]) -> Iterator[dict[str, Any]]:
    """The JSON objects of a text, outermost only, in order.

    :raises NotRepairable: one that may be meant cannot be read.
    """
    scanned = 0
    start = _START.search(text)
    for _ in range(MAX_STARTS):
        if start is None:
            return
        try:
            found, end = _DECODER.raw_decode(text, start.start())
            yield found
        except (ValueError, RecursionError):
            region = region_at(text, start.start())
            scanned += len(region.text)
            if not fields or not region.names().keys().isdisjoint(fields):
                yield repaired(region, fields)
            end = _behind(region, start.end())
        start = _START.search(text, end)
        if scanned > MAX_SCANNED:
            break
    if start is not None:
        raise NotRepairable("too much of it")


def _behind(region: Region, inside: int) -> int:
    """Where to look on, behind an object or (it has no end) inside it."""
    return region.end if region.closed else inside


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
