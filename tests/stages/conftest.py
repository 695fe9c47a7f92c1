"""Two nodes on one Redis, and a model that counts; each in turn through both providers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from flightsvc.model_server.process import ModelServerProcess
from tests.stages.scene import BUSY_MS, Nodes
from tests.support.redis_server import RedisServer
from tests.support.service import Service

TENANTS = {"token-acme": "acme", "token-beta": "beta"}


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServerProcess]:
    with ModelServerProcess() as model:
        yield model


def settings(
    provider: str, model: ModelServerProcess, redis: RedisServer, namespace: str
) -> dict[str, str]:
    """Settings of both nodes."""
    names = ("EVALUATION", "FOLLOW_UP", "EXTRACTION", "DEMEANOR")
    return {
        "FLIGHTSVC_REDIS_URL": redis.url,
        "FLIGHTSVC_NAMESPACE": namespace,
        "FLIGHTSVC_API_TOKENS": json.dumps(TENANTS),
        "FLIGHTSVC_PROVIDER": provider,
        "FLIGHTSVC_BREAKER_FAILURES": "1000",
        "FLIGHTSVC_HEARTBEAT_MS": "200",
        "FLIGHTSVC_STAGES__EXTRACTION__SESSION_LOCK_WAIT_MS": str(BUSY_MS),
        **(
            {
                "FLIGHTSVC_OPENAI_BASE_URL": model.base_url,
                "FLIGHTSVC_OPENAI_API_KEY": "sk-secret",
                "FLIGHTSVC_OPENAI_MODEL": "m",
            }
            if provider == "openai"
            else {
                "FLIGHTSVC_XINGCHEN_BASE_URL": model.xingchen_url,
                "FLIGHTSVC_XINGCHEN_API_KEY": "key",
                "FLIGHTSVC_XINGCHEN_API_SECRET": "secret",
                **{f"FLIGHTSVC_STAGES__{name}__FLOW_ID": name.lower() for name in names},
            }
        ),
    }


@pytest.fixture(scope="session", params=["openai", "xingchen"])
def both(
    request: pytest.FixtureRequest, model_server: ModelServerProcess, redis_server: RedisServer
) -> Iterator[tuple[Service, Service, str]]:
    namespace = "t-" + os.urandom(6).hex()
    env = settings(request.param, model_server, redis_server, namespace)
    with Service(env, workers=1) as one, Service(env, workers=1) as two:
        yield one, two, namespace


@pytest.fixture(scope="session")
def one_database(
    model_server: ModelServerProcess,
    redis_server: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Service, Service, str, Path]]:
    namespace = "t-" + os.urandom(6).hex()
    database = tmp_path_factory.mktemp("records") / "records.sqlite3"
    env = settings("openai", model_server, redis_server, namespace)
    env["FLIGHTSVC_DATABASE_URL"] = f"sqlite:///{database}"
    env["FLIGHTSVC_DATABASE_TIMEOUT_MS"] = "500"
    with Service(env, workers=1) as one, Service(env, workers=1) as two:
        yield one, two, namespace, database


@pytest.fixture
def shared(
    one_database: tuple[Service, Service, str, Path],
    model_server: ModelServerProcess,
    redis_server: RedisServer,
) -> Iterator[Nodes]:
    """Two nodes whose answers are kept in one database."""
    one, two, namespace, database = one_database
    model_server.reset()
    with Nodes(one, two, model_server, redis_server, namespace, database) as nodes:
        yield nodes


@pytest.fixture
def nodes(
    both: tuple[Service, Service, str],
    model_server: ModelServerProcess,
    redis_server: RedisServer,
) -> Iterator[Nodes]:
    one, two, namespace = both
    model_server.reset()
    with Nodes(one, two, model_server, redis_server, namespace) as nodes:
        yield nodes
