"""The example backend on several nodes, and the people who use it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import gevent

from examples.legacy_backend.model import PROMPT
from examples.legacy_backend.tables import QUESTIONS
from flightsvc import FlightKey
from flightsvc.flight import hash_text, normalise_answer
from flightsvc.model_server.process import ModelServerProcess
from tests.processes import ROOT
from tests.support.redis_server import RedisServer
from tests.support.service import Reply, Service, ask

AFTER = "examples.legacy_backend.after:create_app()"
#: the backend's own configuration instead of ours
OWN = ("-c", str(ROOT / "examples/legacy_backend/gunicorn_conf.py"), "-b", "127.0.0.1:0", "-w", "2")
LOGIN = "/hr/login"
GRACE_S = 2
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def node(
    folder: Path, redis: RedisServer, model: ModelServerProcess, namespace: str, own: bool = False
) -> Service:
    """One gunicorn master with two workers, not started yet.

    :param own: by the backend's own gunicorn configuration.
    """
    env = {
        "HR_DATABASE": str(folder / "hr.sqlite"),
        "HR_MODEL_URL": model.base_url,
        "HR_SECRET": "the same on all nodes",
        "FLIGHTSVC_REDIS_URL": redis.url,
        "FLIGHTSVC_NAMESPACE": namespace,
        "FLIGHTSVC_DATA_DIR": str(folder),
        "FLIGHTSVC_GRACE_S": str(GRACE_S),
        "FLIGHTSVC_PROVIDER": "openai",
        "FLIGHTSVC_OPENAI_BASE_URL": model.base_url,
        "FLIGHTSVC_OPENAI_API_KEY": "sk-secret",
        "FLIGHTSVC_OPENAI_MODEL": "m",
        "FLIGHTSVC_STAGES__EVALUATION__RETRY_DELAYS_MS": "[]",
    }
    return Service(env, app=AFTER, options=OWN if own else ())


class Person:
    """Somebody who is signed in, on all nodes."""

    def __init__(self, name: str, service: Service) -> None:
        self.name = name
        form = urlencode({"user": name, "password": f"{name}-secret"}).encode()
        reply = ask(service.url + LOGIN, "POST", body=form, headers=FORM)
        assert reply.status == 302, reply
        self.cookie = {"Cookie": reply.headers["set-cookie"].partition(";")[0]}

    def get(self, service: Service, path: str) -> Reply:
        return ask(service.url + path, headers=self.cookie)

    def post(self, service: Service, path: str, value: object) -> Reply:
        return service.post(path, value, headers=self.cookie)

    def grade(self, service: Service, answer: str) -> Reply:
        """One click."""
        form = urlencode({"answer": answer}).encode()
        where = service.url + "/hr/gradings/1"
        return ask(where, "POST", body=form, headers={**self.cookie, **FORM})

    def grading(self, service: Service, answer: str) -> gevent.Greenlet[..., Reply]:
        """One click, while the test goes on."""
        return gevent.spawn(self.grade, service, answer)

    def followers(self, service: Service, answer: str) -> Any:
        """How many other workers wait for the grading of an answer."""
        variant = hash_text(QUESTIONS[0][1], PROMPT)
        key = FlightKey("grading", 1, normalise_answer(answer), tenant=self.name, variant=variant)
        shown = self.get(service, f"/hr/ai/v1/flights/{key.flight_id}")
        return shown.json().get("followers")


def answer() -> str:
    """One that nobody gave before."""
    return f"Space, and time for each write ({os.urandom(4).hex()})."


def rule(said: str, score: int = 70, **behave: Any) -> dict[str, Any]:
    """A rule of the model server for the gradings of an answer."""
    graded = {"answer": "text", "text": json.dumps({"score": score}), **behave}
    return {"name": said, "match": {"last_user_contains": said}, "behave": graded}
