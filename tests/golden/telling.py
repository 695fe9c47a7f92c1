"""What a client is told of a failure, as the list has it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from werkzeug.test import TestResponse

from flightsvc.checklist import Code, load_checklist
from flightsvc.settings import Settings
from flightsvc.web.problem import MIMETYPE
from tests.golden.scene import Scene

CHECKLIST = load_checklist(Settings())
Make = Callable[..., Scene]
LANGUAGES = ("zh", "en")
NO_RETRY: dict[str, Any] = {"evaluation": {"retry_delays_ms": ()}}


def listed(name: str) -> Code:
    """The shipped list's code."""
    return CHECKLIST.code(name)


def is_told(
    reply: TestResponse, code: str, language: str, status: int = 503, *, listed_as: str = ""
) -> dict[str, Any]:
    """It is a problem with this code and its words.

    :param listed_as: the code of the list, where the problem's own is none.
    """
    body: dict[str, Any] = json.loads(reply.data)
    assert (reply.status_code, body["code"]) == (status, code), body
    assert reply.content_type == MIMETYPE
    assert body["message"] == listed(listed_as or code).message(language)
    assert body["message"]
    assert reply.headers["Content-Language"] == language
    return body
