"""What callers of the four stages do, and what they see."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import gevent
from urllib3 import encode_multipart_formdata

from flightsvc.interview.evaluation import EvaluationInput, flight_key
from flightsvc.interview.keeping import mark_of
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.store import Names
from flightsvc.store.names import SharedNames
from flightsvc.store.watch import LOOK_S
from tests.files.samples import picture, text_pdf
from tests.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Reply, Service

#: how long a call waits for another of its session, in ms
BUSY_MS = 1_500
ACME = {"Authorization": "Bearer token-acme"}
BETA = {"Authorization": "Bearer token-beta"}

EVALUATION = {"question_number": 1, "question": "What is a B-tree?", "answer": "A balanced tree."}
FOLLOW_UP = {
    "current_question": "What is a B-tree?",
    "answer": "A balanced tree.",
    "follow_up_count": 0,
    "max_follow_up": 2,
}
PDF, OTHER_PDF = text_pdf("Ada Lovelace, engineer"), text_pdf("Grace Hopper, admiral")
PICTURE, OTHER_PICTURE = picture("JPEG"), picture("JPEG", size=(90, 40))

Part = tuple[str, bytes, str]


def form(content: bytes, name: str = "cv.pdf", **fields: str) -> tuple[bytes, str]:
    """A file and fields as a body, and its type."""
    parts: dict[str, str | Part] = {**fields, "file": (name, content, "application/octet-stream")}
    return encode_multipart_formdata(parts)


#: address of each stage, its body and the type of that
BODIES: Mapping[str, tuple[bytes, str]] = {
    "evaluations": (json.dumps(EVALUATION).encode(), "application/json"),
    "follow-ups": (json.dumps(FOLLOW_UP).encode(), "application/json"),
    "extractions": form(PDF),
    "demeanor": form(PICTURE, "me.jpg"),
}


class Nodes:
    """Two nodes, and an interview of this test's own.

    :param model: whom both ask.
    :param namespace: of both, in the Redis that both use.
    """

    def __init__(
        self,
        one: Service,
        two: Service,
        model: ModelServerProcess,
        redis: RedisServer,
        namespace: str,
        database: Path | None = None,
    ) -> None:
        self.one, self.two, self.model, self.redis = one, two, model, redis
        self.database = database
        self.namespace, self.names = namespace, Names(namespace, 16)
        self.session = f"s-{time.monotonic_ns()}"
        self.at = f"/v1/interviews/{self.session}"
        self._asking: list[gevent.Greenlet[..., Reply]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.model.reset()  # whoever still waits for it is done
        gevent.joinall(self._asking, timeout=20)
        if kind is not None:
            for node in (self.one, self.two):
                print(node.log()[-4_000:])

    def ask(
        self,
        stage: str,
        body: tuple[bytes, str] | None = None,
        *,
        node: Service | None = None,
        query: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """One caller's answer."""
        content, kind = body or BODIES[stage]
        said = {**ACME, "Content-Type": kind, **(headers or {})}
        where = f"{self.at}/{stage}{query}"
        return (node or self.one).get(where, method="POST", body=content, headers=said)

    def asking(self, stage: str, *args: Any, **options: Any) -> gevent.Greenlet[..., Reply]:
        """The same, while the test goes on."""
        self._asking.append(gevent.spawn(self.ask, stage, *args, **options))
        return self._asking[-1]

    def await_flights(self, number: int) -> None:
        """Wait until so many are in the air."""
        live = [self.names.live(shard) for shard in range(self.names.shards)]
        client: Any = self.redis.client()
        wait_until(lambda: sum(client.zcard(name) for name in live) == number)

    def hold(self, gate: str = "held") -> None:
        """Have the model think until the gate is opened."""
        upload = {"match": {"kind": "upload"}}
        self.model.script({"rules": [upload], "default": {"gate": gate}})

    @contextmanager
    def database_away(self) -> Iterator[None]:
        """Nobody can write a row in the block."""
        assert self.database is not None
        connection = sqlite3.connect(self.database, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")
            connection.close()

    def forget_the_marks(self) -> None:
        """As they are forgotten some minutes after a deletion."""
        self.redis.client().delete(SharedNames(self.namespace).forgotten)

    def await_following(self) -> None:
        """Wait until another worker follows the evaluation."""
        asked = EvaluationInput.model_validate(EVALUATION)
        key = flight_key(self.session, asked, tenant="acme", provider="openai", model="m")
        flight = f"/v1/flights/{key.flight_id}"
        wait_until(lambda: self.one.get(flight, headers=ACME).json().get("followers") == 1)

    def heard_of_the_deletion(self) -> bool:
        """Whether the mark of the deleted session was there for longer than a worker's look."""
        client: Any = self.redis.client()
        told = client.zrange(SharedNames(self.namespace).forgotten, 0, -1, withscores=True)
        since = dict(told).get(mark_of("acme", self.session).encode())
        seconds, micros = client.time()
        return since is not None and 1000 * seconds + micros / 1000 - since > 2_000 * LOOK_S

    def get(
        self,
        path: str = "",
        *,
        node: Service | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """What is known of the session."""
        return (node or self.one).get(self.at + path, headers={**ACME, **(headers or {})})

    def delete(
        self, *, node: Service | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Forget the session."""
        return (node or self.one).get(self.at, method="DELETE", headers={**ACME, **(headers or {})})


def events(reply: Reply) -> list[tuple[str, dict[str, Any]]]:
    """Names and data of server-sent events."""
    found = []
    for block in reply.body.decode().strip().split("\n\n"):
        if block.startswith(":"):
            continue
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def steps(reply: Reply) -> list[str]:
    """The names alone."""
    return [name for name, _ in events(reply)]
