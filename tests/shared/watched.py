"""The service, and a page that says which worker answered and what it knows of a stage."""

from __future__ import annotations

import json
import os

from flask import Response

from flightsvc.web.extension import extension
from flightsvc.wsgi import app

__all__ = ["app"]


@app.get("/knows/<stage>/<provider>")
def knows(stage: str, provider: str) -> Response:
    pause = extension().shared.watch.paused(stage, provider)
    said = {"pid": os.getpid(), "reason": pause and pause.reason}
    return Response(json.dumps(said), headers={"Connection": "close"})
