"""Probes, a missing Redis, a preloaded app."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import gevent
import pytest
from gevent.pool import Pool

from flightsvc.model_server.process import ModelServerProcess
from tests.support.service import Reply, Service
from tests.web.running import is_problem, openai, path


def test_the_probes_answer_while_all_waiters_are_taken(
    model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    model.script([{"match": {}, "behave": {"gate": "answer"}}])
    env = {**openai(model), "FLIGHTSVC_MAX_WAITERS": "5", "FLIGHTSVC_WORKER_CONNECTIONS": "10"}
    with Service(env, workers=1) as service:
        post = lambda: service.post(path(session), asked)  # noqa: E731
        waiting = [gevent.spawn(post) for _ in range(6)]
        refused: Reply = gevent.wait(waiting, count=1, timeout=20)[0].get()

        is_problem(refused, 503, "TOO_MANY_WAITERS")
        assert service.get("/healthz").status == 200
        assert service.get("/readyz").json() == {"status": "ready", "redis": "ok"}
        model.open_gate("answer")
        replies: list[Reply] = [each.get() for each in waiting]

    assert sorted(reply.status for reply in replies) == [200] * 5 + [503]
    assert model.stats()["calls"] == 1


def test_h20_a_preloaded_app_shares_no_connection(
    model: ModelServerProcess, session: str, asked: dict[str, Any]
) -> None:
    with Service(openai(model), workers=2, options=("--preload",)) as service:
        bodies = [{**asked, "answer": f"Answer {number}."} for number in range(20)]
        post = lambda body: service.post(path(session), body)  # noqa: E731
        replies: list[Reply] = Pool(20).map(post, bodies)
        master, *workers = (open_sockets(pid) for pid in (service.pid, *service.worker_pids()))

    assert {reply.status for reply in replies} == {200}
    assert len(workers) == 2
    assert workers[0] & workers[1] <= master  # what it listens on
    assert len(master) == 1


def open_sockets(pid: int) -> set[str]:
    """The sockets of a process, by their numbers in the kernel."""
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(os.readlink(entry))
    return {name for name in found if name.startswith("socket:")}


@pytest.mark.parametrize("mode", ["hybrid", "distributed"])
def test_without_redis(
    model: ModelServerProcess, session: str, asked: dict[str, Any], mode: str
) -> None:
    env = {
        **openai(model),
        "FLIGHTSVC_REDIS_URL": "unix:///nowhere/redis.sock",
        "FLIGHTSVC_MODE": mode,
    }
    service = Service(env, workers=1)
    try:
        service.start(probe="/healthz")
        ready = service.get("/readyz")
        reply = service.post(path(session), asked)
        shown = service.get("/v1/flights/" + "0" * 32)
    finally:
        service.close()

    assert ready.json()["redis"] == "degraded"
    is_problem(shown, 503, "COORDINATION_UNAVAILABLE")
    if mode == "hybrid":
        assert (ready.status, ready.json()["status"]) == (200, "ready")
        assert (reply.status, reply.headers["flight-role"]) == (200, "local")
    else:
        assert (ready.status, ready.json()["status"]) == (503, "not_ready")
        assert int(ready.headers["retry-after"]) >= 1
        is_problem(reply, 503, "COORDINATION_UNAVAILABLE")
        assert model.stats()["calls"] == 0
