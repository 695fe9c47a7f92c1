"""A Flask app that takes files and reads them; it says how late its own heartbeat was."""

from __future__ import annotations

import resource
import time
from functools import cache
from typing import Any

import gevent
from flask import Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException

from flightsvc.errors import FlightSvcError
from flightsvc.files import FileStore, ReadLimits, open_file_store, read_image, read_pdf
from flightsvc.settings import load_settings
from flightsvc.web.problem import from_error, from_http
from flightsvc.web.uploads import Upload, read_upload

BEAT_S = 0.05

app = Flask(__name__)
settings = load_settings()
limits = ReadLimits.of(settings)
latest: list[float] = []


@cache
def store() -> FileStore:
    """Made at the first request, in the worker."""
    return open_file_store(settings)


@cache
def heart() -> gevent.Greenlet[..., None]:
    return gevent.spawn(beat)


def beat() -> None:
    while True:
        before = time.perf_counter()
        gevent.sleep(BEAT_S)
        latest.append(time.perf_counter() - before - BEAT_S)


@app.get("/healthz")
def healthz() -> Response:
    heart()
    latest.clear() if request.args.get("reset") else None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return jsonify(latest=max(latest, default=0.0), peak=peak)


@app.post("/files")
def files() -> Response:
    limit = request.args.get("limit", settings.max_file_bytes, int)
    return jsonify(told(read_upload(request, settings, store(), limit=limit, fields=("position",))))


@app.post("/resumes")
def resumes() -> Response:
    upload = read_upload(request, settings, store(), limit=settings.max_file_bytes)
    with store().path(upload.stored.digest) as path:
        return jsonify(**told(upload), text=read_pdf(path, limits))


@app.post("/pictures")
def pictures() -> Response:
    upload = read_upload(request, settings, store(), limit=settings.max_image_bytes)
    with store().path(upload.stored.digest) as path:
        return Response(read_image(path, limits), content_type="image/jpeg")


@app.errorhandler(FlightSvcError)
def refused(error: FlightSvcError) -> Any:
    return from_error(error)


@app.errorhandler(HTTPException)
def refused_by_werkzeug(error: HTTPException) -> Any:
    return from_http(error)


def told(upload: Upload) -> dict[str, Any]:
    digest, size = upload.stored.digest, upload.stored.size
    return {"digest": digest, "size": size, "name": upload.name, "form": upload.form}
