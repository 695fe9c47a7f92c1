"""Two nodes of one cluster under gunicorn, and a model that answers when it is let."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import gevent

from flightsvc.model_server.process import ModelServerProcess
from tests.support.redis_server import RedisServer
from tests.support.service import Reply, Service, ask

TOKEN = "token-of-anna-long-and-random"
ANNA = {"Authorization": f"Bearer {TOKEN}"}
ACME = {"Authorization": "Bearer token-acme"}
SECRET = "What nobody may see"
SESSION = "session-of-somebody"
#: whoever says a gate's name waits at it
SCRIPT: dict[str, Any] = {
    "rules": [
        {"name": gate, "match": {"last_user_contains": gate}, "behave": {"gate": gate}}
        for gate in ("gate-one", "gate-two", "gate-three")
    ],
    "default": {"answer": "evaluation"},
}


class Site(NamedTuple):
    """What the tests look at."""

    nodes: tuple[Service, Service]
    model: ModelServerProcess
    redis: RedisServer

    def page(self, node: int = 0) -> str:
        return self.nodes[node].url + "/flights"

    def shut_gates(self) -> None:
        """Hold every question at its gate again."""
        self.model.reset()
        self.model.script(SCRIPT)

    def ask(self, node: int, words: str) -> gevent.Greenlet[..., Reply]:
        """Somebody's question; the answer comes later."""
        asked = {"question_number": 1, "question": SECRET, "answer": words}
        path = f"/v1/interviews/{SESSION}/evaluations"
        return gevent.spawn(self.nodes[node].post, path, asked, headers=ACME)

    def state(self, node: int = 0, query: str = "") -> dict[str, Any]:
        """What the page shows, as JSON."""
        reply = self.nodes[node].get(f"/flights/state{query}", headers=ANNA)
        assert reply.status == 200, reply
        found: dict[str, Any] = reply.json()
        return found

    def switch(self, method: str, path: str, reason: str = "") -> None:
        """An operator's word about a module."""
        body = json.dumps({"reason": reason}).encode() if reason else None
        headers = {**ANNA, "Content-Type": "application/json"}
        url = f"{self.nodes[0].url}/v1/modules/{path}"
        reply = ask(url, method, body=body, headers=headers)
        assert reply.status == 200, reply


@contextmanager
def site(settings: Mapping[str, str] | None = None, *, workers: int = 1) -> Iterator[Site]:
    """Start everything; in the end nothing is left."""
    with RedisServer() as redis, ModelServerProcess(SCRIPT) as model:
        env = {
            "FLIGHTSVC_REDIS_URL": redis.url,
            "FLIGHTSVC_API_TOKENS": json.dumps({"token-acme": "acme"}),
            "FLIGHTSVC_OPERATOR_TOKENS": json.dumps({TOKEN: "anna"}),
            "FLIGHTSVC_PROVIDER": "openai",
            "FLIGHTSVC_OPENAI_BASE_URL": model.base_url,
            "FLIGHTSVC_OPENAI_MODEL": "some-model",
            "FLIGHTSVC_GRACE_S": "2",
            **(settings or {}),
        }
        one, two = (Service(env, workers=workers) for _ in range(2))
        with one, two:
            yield Site((one, two), model, redis)
