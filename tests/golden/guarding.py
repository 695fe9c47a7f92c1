"""A worker in a process of its own that makes guarded calls, told how many line by line."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import gevent
from gevent.fileobject import FileObject

from flightsvc.errors import FlightSvcError
from flightsvc.guard import AiCallGuard, Route, Routes, Target
from flightsvc.metrics import Metrics
from flightsvc.providers import make_models
from flightsvc.providers.base import Message, ModelRequest
from flightsvc.settings import Settings
from flightsvc.store import open_store
from flightsvc.store.shared import SharedState

PROGRAM = """
from gevent import monkey; monkey.patch_all()
from tests.golden.guarding import main; main()
"""
REQUEST = ModelRequest((Message("user", "hello"),), "evaluation", json_answer=False)


def main() -> None:
    """``url namespace base_url reset_s``; each line is for how many calls at once. Answers with
    what came of each: its code (empty: it succeeded), its time in s and its Retry-After."""
    url, namespace, base_url, reset_s = sys.argv[1:5]
    settings = Settings.checked(
        redis_url=url,
        namespace=namespace,
        provider="openai",
        openai_base_url=base_url,
        openai_model="m",
        breaker_reset_s=float(reset_s),
        stages={"evaluation": {"retry_delays_ms": ()}},
    )
    metrics = Metrics.off()
    store = open_store(settings, metrics)
    shared = SharedState(settings, metrics, store)
    guard = AiCallGuard(settings, metrics, shared=shared.breakers)
    model = make_models(settings, metrics).primary
    routes = Routes(Route(Target(model.name, model.model), lambda s: model.complete(REQUEST, s)))

    def one() -> tuple[str, float, float | None]:
        began = time.monotonic()
        try:
            guard.execute("evaluation", routes)
        except FlightSvcError as error:
            return error.code, time.monotonic() - began, error.retry_after_s
        return "", time.monotonic() - began, None

    shared.start()
    print("ready", flush=True)
    for line in FileObject(sys.stdin.fileno(), "r", close=False):
        asking: list[Any] = [gevent.spawn(one) for _ in range(int(line))]
        print(json.dumps([each.get() for each in asking]), flush=True)
    shared.close()
