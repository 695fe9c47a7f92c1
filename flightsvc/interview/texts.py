"""The texts of a question, as the key and the prompt both have them."""

from __future__ import annotations

from typing import Annotated
from unicodedata import category

from pydantic import AfterValidator, Field
from pydantic.config import JsonDict

from flightsvc.flight.key import normalise_answer

#: Unicode's categories of what cannot be seen: spaces, line ends, controls, format characters
_UNSEEN = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf"})


def normalised(text: str) -> str:
    """The text as both the key and the prompt have it, so that equal keys mean equal prompts."""
    if "\0" in text:
        raise ValueError("must not hold the character U+0000")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must not hold half of a surrogate pair") from None
    return normalise_answer(text)


def _filled(text: str) -> str:
    text = normalised(text)
    if not text:
        raise ValueError("must not be empty")
    return text


#: the same for whoever reads a schema
_NO_NUL: JsonDict = {"pattern": r"^[^\x00]*$"}
_NOT_BLANK: JsonDict = {"pattern": r"^[^\x00]*[^\s\x00][^\x00]*$"}

Text = Annotated[str, AfterValidator(normalised), Field(json_schema_extra=_NO_NUL)]
FilledText = Annotated[str, AfterValidator(_filled), Field(json_schema_extra=_NOT_BLANK)]


def is_blank(text: str) -> bool:
    """Whether nothing of a text can be seen: white space, and characters of no width."""
    return all(category(character) in _UNSEEN for character in text)


def none_if_blank(value: object) -> object:
    """A model's empty text where null is meant."""
    return None if isinstance(value, str) and not value.strip() else value
