"""A WSGI app that says which worker answered and what its master handed to it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

from flightsvc.serving import handed_settings


def app(_environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    settings = handed_settings()
    start_response("200 OK", [("Content-Type", "application/json"), ("Connection", "close")])
    said = {
        "pid": os.getpid(),
        "master": os.getppid(),
        "slot": os.environ.get("_FLIGHTSVC_WORKER_SLOT"),
        "valkey": os.environ.get("_FLIGHTSVC_EMBEDDED_URL"),
        "namespace": settings.namespace if settings else None,
    }
    return [json.dumps(said).encode()]
