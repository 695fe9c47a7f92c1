"""A Flask route that does nothing: what gunicorn and Flask cost by themselves."""

from __future__ import annotations

from flask import Flask, Response

app = Flask("bare")
BODY = b'{"score":70,"logic_ok":true,"missing_points":["a point"],"feedback":"A good answer."}'


@app.post("/v1/interviews/<session_id>/evaluations")
def evaluate(session_id: str) -> Response:  # noqa: ARG001
    return Response(BODY, content_type="application/json")
