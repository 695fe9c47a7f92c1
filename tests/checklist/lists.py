"""Lists for tests: the shipped one, or with a user's text over it."""

from __future__ import annotations

import pytest

from flightsvc.checklist import Checklist
from flightsvc.checklist.document import parse, shipped
from flightsvc.checklist.loading import build
from flightsvc.errors import SettingsError
from flightsvc.settings import Settings

#: what a user's text is called
OWN = "own.toml"

#: a whole code, for texts that need one
CODE = """
level = "L1"
cause = "input"
failure_type = "VALIDATION"
retryable = false
fallback = "nothing"
status = 422
about_zh = "测试"
about_en = "A test"
message_zh = "测试"
message_en = "A test"
"""


def merged(text: str = "", settings: Settings | None = None) -> Checklist:
    """The shipped list with a user's text over it."""
    own = parse(text, OWN) if text else None
    return build(shipped(), own, settings or Settings())


def faults(text: str, settings: Settings | None = None) -> list[str]:
    """What is said about a user's text, one fault each."""
    with pytest.raises(SettingsError) as raised:
        merged(text, settings)
    assert raised.value.code == "CHECKLIST_INVALID"
    said = str(raised.value)
    head, *rest = said.split("\n  - ")
    if rest:
        assert head == f"{len(rest)} faults in the checklist:"
    return rest or [head]
