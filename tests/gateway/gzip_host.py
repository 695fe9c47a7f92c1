"""A host app that compresses whatever it sends, streams too."""

from __future__ import annotations

from flask import Flask
from flask_compress import Compress

from flightsvc.app import FlightSvc
from flightsvc.web import gateway_blueprint, health_blueprint

app = Flask("host")
app.config["COMPRESS_MIMETYPES"] = ["text/html", "application/json", "text/event-stream"]
app.config["COMPRESS_STREAMS"] = True
Compress(app)
FlightSvc(app)
app.register_blueprint(gateway_blueprint())
app.register_blueprint(health_blueprint())


@app.get("/long")
def long() -> str:
    return "long " * 1000
