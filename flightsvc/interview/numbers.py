"""Numbers as JSON has them."""

from __future__ import annotations

from pydantic import BeforeValidator


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


#: 3.0 is 3, as in JSON and its schemas; a number with a fraction is still refused
Whole = BeforeValidator(_whole)
