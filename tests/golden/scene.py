"""A whole worker in this process, real Redis and model server beside it, and what it did."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import Any

import gevent
import redis
from flask import Flask
from werkzeug.test import TestResponse

from flightsvc.alerts.rules import failures_of
from flightsvc.app import FlightSvc, close_worker, create_app
from flightsvc.checklist import Code
from flightsvc.errors import CheckedFailure
from flightsvc.interview.invoker import InterviewAiInvoker
from flightsvc.model_server.process import ModelServerProcess
from flightsvc.providers.base import ModelAnswer, ModelRequest
from flightsvc.providers.models import Models
from flightsvc.settings import Settings
from tests.support.data import DATA_DIR

MODEL, SMALL = "big-model", "small-model"
ASKED = {"question_number": 1, "question": "What is a fence?", "answer": "It rises."}


class Supplier:
    """Another system behind the same door: it fails in a way that only it can name."""

    name = "openai"
    model = MODEL

    def __init__(self, fail: Callable[[], BaseException]) -> None:
        self.fail = fail
        self.calls = 0

    def complete(self, _request: ModelRequest, _timeout_s: float) -> ModelAnswer:
        self.calls += 1
        raise self.fail()

    def close(self) -> None:
        pass


class Alerted(logging.Handler):
    """The alert policies that were told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = record.__dict__
        if line.get("event") == "alert":
            self.told.append((line["alert"], line["code"]))


class Scene:
    """One app, one worker.

    :param settings: over those that all scenes have.
    """

    def __init__(
        self,
        client: redis.Redis,
        namespace: str,
        url: str,
        model: ModelServerProcess,
        **settings: Any,
    ) -> None:
        given = {
            "redis_url": url,
            "namespace": namespace,
            "provider": "openai",
            "openai_base_url": model.base_url,
            "openai_model": MODEL,
            "openai_small_model": SMALL,
            "retry_budget_min": 100,
            "data_dir": f"{DATA_DIR}/{namespace}",  # what was kept for another test is not found
            **settings,
        }
        self.settings = Settings.checked(**given)
        self.app: Flask = create_app(self.settings)
        self.service: FlightSvc = self.app.extensions["flightsvc"]
        self.worker = self.service.worker
        self.model = model
        self.redis, self.namespace = client, namespace
        self.supplier: Supplier | None = None
        self.alerted = Alerted()
        logging.getLogger("flightsvc.alert").addHandler(self.alerted)
        self.took_s = 0.0

    def close(self) -> None:
        logging.getLogger("flightsvc.alert").removeHandler(self.alerted)
        close_worker(self.app)

    def supply(self, fail: Supplier | Callable[[], BaseException] | str) -> None:
        """Have the questions answered by a supplier that fails.

        :param fail: itself; or what makes its error; or the code that it raises.
        """
        if isinstance(fail, str):
            name = fail
            fail = lambda: CheckedFailure(name)  # noqa: E731
        self.supplier = fail if isinstance(fail, Supplier) else Supplier(fail)
        worker, primary = self.worker, self.supplier
        models = Models(primary, worker.models.smaller)
        worker.invoker = InterviewAiInvoker(
            self.settings, worker.flights, worker.guard, models, worker.alerts, shared=worker.shared
        )

    def ask(self, language: str = "", session: str = "s1", **changes: Any) -> TestResponse:
        headers = {"Accept-Language": language} if language else {}
        began = time.monotonic()
        reply = self.app.test_client().post(
            f"/v1/interviews/{session}/evaluations", json={**ASKED, **changes}, headers=headers
        )
        self.took_s = time.monotonic() - began
        return reply

    def attempts(self) -> tuple[int, int]:
        """Calls on the primary and on the smaller model."""
        by_rule = self.model.stats()["by_rule"]
        small = by_rule.get("small", 0)
        asked = self.supplier.calls if self.supplier else self.model.stats()["calls"] - small
        return asked, small

    def events(self, within_s: float = 2.0) -> list[dict[str, Any]]:
        """State events in the stream, as soon as there is one; none after a moment."""
        end = time.monotonic() + within_s
        found: list[Any] = []
        while not found and time.monotonic() < end:
            found = list(self.redis.xrange(f"{{{self.namespace}}}:events:state") or ())
            gevent.sleep(0.02)
        return [json.loads(fields[b"event"]) for _, fields in found]

    def counted(self, code: Code) -> int:
        """Failures with this code that its alert rule knows of."""
        assert code.alert is not None
        self.worker.alerts.look()
        counters = self.worker.shared.counters
        return int(counters.total(failures_of(code), code.alert.window_s))
