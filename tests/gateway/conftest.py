"""Two nodes on one Redis and a model: each node a gunicorn master of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.faults.nodes import Pair
from tests.gateway.talking import Chat, Talker
from tests.support.redis_server import RedisServer

#: token → tenant
TOKENS = {"token-alice": "alice", "token-bob": "bob"}
ALICE = {"Authorization": "Bearer token-alice"}
BOB = {"Authorization": "Bearer token-bob"}

#: settings of the nodes that most tests share
SHARED = {
    "FLIGHTSVC_API_TOKENS": json.dumps(TOKENS),
    "FLIGHTSVC_GATEWAY_HEAD_AFTER_MS": "2500",
    "FLIGHTSVC_GATEWAY_KEEP_ALIVE_MS": "1000",
    "FLIGHTSVC_GATEWAY_MAX_BODY_BYTES": "3000000",
    "FLIGHTSVC_STAGES__CHAT__BETWEEN_BYTES_MS": "20000",
    # stress of the machine must not look like the death of an owner
    "FLIGHTSVC_TAKEOVER_DETECT_MS": "6000",
}

#: Somebody asks: ``talk("a", chat, …)``; see :class:`Talker`.
Talk = Callable[..., Talker]


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServerProcess]:
    with ModelServerProcess() as model:
        yield model


@pytest.fixture
def model(model_server: ModelServerProcess) -> ModelServerProcess:
    """A model that has been asked nothing yet."""
    model_server.reset()
    return model_server


@pytest.fixture(scope="session")
def nodes(redis_server: RedisServer, model_server: ModelServerProcess) -> Iterator[Pair]:
    """Two nodes of one worker each, not to be harmed; they want tokens."""
    with Pair(redis_server, model_server, env=SHARED) as pair:
        yield pair


@pytest.fixture
def talk(nodes: Pair) -> Iterator[Talk]:
    """Asks a node as Alice, if not told otherwise."""
    talkers: list[Talker] = []

    def start(node: str, chat: Chat, **options: Any) -> Talker:
        url = {"a": nodes.a, "b": nodes.b}[node].service.url
        headers = {**ALICE, **options.pop("headers", {})}
        talkers.append(Talker(url, chat, headers=headers, **options))
        return talkers[-1]

    yield start
    for talker in talkers:
        talker.leave()
