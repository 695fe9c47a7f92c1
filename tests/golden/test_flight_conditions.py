"""Codes of the flights themselves, each brought about for real."""

from __future__ import annotations

import json
import time
from typing import Any

import gevent
import pytest

from flightsvc.errors import CheckedFailure
from flightsvc.flight.coordinator import Ask, FlightCoordinator, Ownership
from flightsvc.interview import evaluation
from flightsvc.interview.evaluation import EvaluationInput
from flightsvc.providers.base import ModelAnswer, ModelRequest
from flightsvc.store import Names
from tests.golden.scene import ASKED, MODEL, Scene, Supplier
from tests.golden.telling import LANGUAGES, NO_RETRY, Make, is_told, listed
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

ASKED_BY_ALL = EvaluationInput.model_validate(ASKED)
KEY = evaluation.flight_key("s1", ASKED_BY_ALL, tenant="", provider="openai", model=MODEL)
QUICK: dict[str, Any] = {"heartbeat_ms": 100, "takeover_detect_ms": 400}


class DyingOwner:
    """Another worker of the namespace that owns the flight, and beats for as long as it lives."""

    def __init__(self, scene: Scene) -> None:
        names = Names(scene.namespace, scene.settings.flight_shards)
        store = scene.worker.flights._distributed._store
        self._shard = names.shard_of(KEY.flight_id)
        self._coordinator = FlightCoordinator(store, names, scene.settings, "dying")
        self._own: Ownership | None = None

    def takes(self, token: str) -> bool:
        """Whether it is granted the flight now."""
        outcome = self._coordinator.acquire_or_join(Ask(KEY, token))
        self._own = outcome if isinstance(outcome, Ownership) else None
        return self._own is not None

    def lives(self, seconds: float) -> None:
        assert self._own is not None
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._coordinator.beat(self._shard, [self._own])
            gevent.sleep(0.1)


def test_wait_timeout(make: Make) -> None:
    """An owner dies late, and its successor needs its own time: longer than callers wait."""
    times = {"timeout_ms": 3_000, "budget_ms": 3_000, "retry_delays_ms": ()}
    scene = make(openai_small_model="", stages={"evaluation": times}, **QUICK)
    scene.model.script([{"match": {}, "behave": {"gate": "go"}}])
    dying = DyingOwner(scene)
    assert dying.takes("dies late")

    waiting = {language: gevent.spawn(scene.ask, language) for language in LANGUAGES}
    dying.lives(2.8)
    replies = {language: caller.get() for language, caller in waiting.items()}
    for language, reply in replies.items():
        is_told(reply, "WAIT_TIMEOUT", language, 504)
        assert int(reply.headers["Retry-After"]) >= 1
    assert scene.took_s >= 4.4  # as long as anybody waits
    assert scene.counted(listed("WAIT_TIMEOUT")) == 2

    # and the call that went on answers whoever looks again
    scene.model.open_gate("go")
    assert scene.ask().status_code == 200
    assert scene.attempts() == (1, 0)
    assert scene.events(0.2) == []


def test_session_busy(make: Make) -> None:
    """One heavy task of a session at a time; who comes meanwhile is told, and nothing is called."""
    locks = {"session_lock": True, "session_lock_wait_ms": 300}
    scene, other = make(stages={"evaluation": locks}), make(stages={"evaluation": locks})
    scene.model.script([{"match": {"times": 1}, "behave": {"gate": "go"}}])
    first = gevent.spawn(scene.ask)
    scene.model.until(open_calls=1)
    for worker in (scene, other):
        for language in LANGUAGES:
            reply = worker.ask(language, question_number=2, answer=f"{language} {id(worker)}")
            is_told(reply, "SESSION_BUSY", language, 409)
            assert 0.3 <= worker.took_s < 1.5
    assert scene.ask(session="s2").status_code == 200
    assert scene.attempts() == (2, 0)
    assert listed("SESSION_BUSY").alert is None

    scene.model.open_gate("go")
    assert first.get().status_code == 200
    assert other.ask(question_number=3).status_code == 200
    assert other.events(0.2) == []


class AsksItself(Supplier):
    """A call that asks for the very answer that it makes."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(lambda: CheckedFailure("AI_UNKNOWN_ERROR"))
        self._scene = scene

    def complete(self, _request: ModelRequest, _timeout_s: float) -> ModelAnswer:
        self.calls += 1
        self._scene.worker.invoker.evaluate("s1", ASKED_BY_ALL)
        raise AssertionError("it was answered")


@pytest.mark.parametrize("language", LANGUAGES)
def test_flight_nested(make: Make, language: str) -> None:
    scene = make()
    scene.supply(AsksItself(scene))
    is_told(scene.ask(language), "FLIGHT_NESTED", language, 500)
    assert scene.took_s < 2  # nobody waits for itself
    assert scene.attempts() == (1, 0)
    assert scene.counted(listed("FLIGHT_NESTED")) == 1
    assert scene.events(0.2) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_result_not_stored(make: Make, own_redis: RedisServer, language: str) -> None:
    """Redis has no room for the answer: its worker's callers have it, the others are told."""
    one, two = make(url=own_redis.url, **QUICK), make(url=own_redis.url, **QUICK)
    one.model.script([{"match": {}, "behave": {"gate": "go"}}])
    owner = gevent.spawn(one.ask)
    one.model.until(open_calls=1)
    follower = gevent.spawn(two.ask, language)
    wait_until(lambda: two.worker.metrics.snapshot().get("flight.actions.evaluation.follower_wait"))
    own_redis.client().config_set("maxmemory-policy", "noeviction")
    own_redis.client().config_set("maxmemory", "1mb")
    one.model.open_gate("go")

    assert owner.get().status_code == 200
    is_told(follower.get(), "RESULT_NOT_STORED", language)
    assert one.attempts() == (1, 0)
    assert two.counted(listed("RESULT_NOT_STORED")) == 1
    assert one.counted(listed("RESULT_NOT_STORED")) == 0
    own_redis.client().config_set("maxmemory", "0")


@pytest.mark.parametrize("language", LANGUAGES)
def test_flight_owners_lost(make: Make, language: str) -> None:
    """Four owners in a row are silent: a fifth is not risked."""
    scene = make(heartbeat_ms=50, takeover_detect_ms=100, stages=NO_RETRY)
    dying = DyingOwner(scene)
    for number in range(4):
        wait_until(lambda token=f"owner {number}": dying.takes(token), 3)  # type: ignore[misc]

    body = is_told(scene.ask(language), "FLIGHT_OWNERS_LOST", language)
    assert body["retryable"] is False
    assert scene.attempts() == (0, 0)
    assert scene.counted(listed("FLIGHT_OWNERS_LOST")) == 1
    assert scene.alerted.told == [("workers_lost", "FLIGHT_OWNERS_LOST")]
    assert scene.events(0.2) == []
    assert json.loads(scene.ask(language).data)["code"] == "FLIGHT_OWNERS_LOST"
