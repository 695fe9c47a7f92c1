"""A WSGI app that says which worker answered and what list its master handed to it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

from flightsvc.serving import handed_checklist, handed_settings


def app(_environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    settings, checklist = handed_settings(), handed_checklist()
    assert settings is not None
    assert checklist is not None
    start_response("200 OK", [("Content-Type", "application/json"), ("Connection", "close")])
    said = {
        "pid": os.getpid(),
        "namespace": settings.namespace,
        "codes": len(checklist.codes),
        "message": checklist.code("OVERLOAD").message_en,
    }
    return [json.dumps(said).encode()]
