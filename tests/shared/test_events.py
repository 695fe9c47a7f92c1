"""State changes reach the stream, in order and whole, and delay nobody."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import gevent
import pytest

from flightsvc.checklist.events import (
    EventSink,
    ModelRolledBack,
    SessionFrozen,
    StateEvent,
    read_event,
)
from flightsvc.metrics import Metrics
from flightsvc.settings import Settings
from flightsvc.store.events_sink import BATCH, MOST_ENTRIES, MOST_WAITING, TTL_MS
from flightsvc.store.shared import SharedState
from tests.processes import wait_until
from tests.shared.conftest import Workers
from tests.support.redis_server import RedisServer

FROZEN = SessionFrozen(
    code="AI_INFRA_UNAVAILABLE",
    stage="evaluation",
    tenant="acme 公司",
    session_id="s-1",
    ttl_s=300,
    flight_id="0" * 32,
    fence=7,
)


def entries(server: RedisServer, namespace: str) -> list[dict[str, object]]:
    found: Any = server.client().xrange(f"{{{namespace}}}:events:state")
    for _, fields in found:
        assert json.loads(fields[b"event"])["kind"] == fields[b"kind"].decode()
    return [json.loads(fields[b"event"]) for _, fields in found]


def read(entry: dict[str, object]) -> StateEvent:
    return read_event({name: str(value) for name, value in entry.items()})


def test_an_event_comes_out_as_it_went_in(
    workers: Workers, redis_server: RedisServer, namespace: str
) -> None:
    metrics = Metrics.off()
    sink: EventSink = workers(metrics=metrics).events
    sent = [replace(FROZEN, session_id=f"s-{number}") for number in range(2 * BATCH + 1)]

    for event in sent:
        sink.emit(event)
    wait_until(lambda: len(entries(redis_server, namespace)) == len(sent), 2)

    told = entries(redis_server, namespace)
    assert [read(entry) for entry in told] == sent
    assert told[0]["ttl_s"] == 300  # numbers are numbers
    assert len({str(entry["id"]) for entry in told}) == len(sent)
    at_ms = told[0]["at_ms"]
    assert isinstance(at_ms, int)
    assert abs(at_ms / 1000 - time.time()) < 60
    assert metrics.snapshot()["shared.events.freeze_session"] == len(sent)
    key = f"{{{namespace}}}:events:state"
    assert TTL_MS - 60_000 < redis_server.client().pttl(key) <= TTL_MS


def test_the_stream_is_bounded(workers: Workers, redis_server: RedisServer, namespace: str) -> None:
    sink = workers().events
    key = f"{{{namespace}}}:events:state"
    with redis_server.client().pipeline() as pipe:
        for _ in range(MOST_ENTRIES + 500):
            pipe.xadd(key, {"kind": "x", "event": "{}"})
        pipe.execute()

    sink.emit(FROZEN)
    wait_until(lambda: not sink.pending())

    assert MOST_ENTRIES <= redis_server.client().xlen(key) <= MOST_ENTRIES + 200


def test_a_frozen_redis_delays_nobody_and_loses_nothing_that_fits(
    workers: Workers, own_redis: RedisServer, namespace: str
) -> None:
    metrics = Metrics.off()
    shared = workers(own_redis.url, metrics=metrics)
    own_redis.freeze()

    began = time.monotonic()
    for number in range(MOST_WAITING + 100):
        shared.events.emit(replace(FROZEN, fence=number))
        if number == 50:
            gevent.sleep(0)
    assert time.monotonic() - began < 0.5
    wait_until(lambda: not shared.watch.up)
    assert metrics.snapshot()["shared.dropped.events"] == 100

    own_redis.thaw()
    wait_until(lambda: not shared.events.pending())
    fences: list[object] = []
    for entry in entries(own_redis, namespace):
        if entry["fence"] not in fences:  # a reply that was lost: the same entry twice
            fences.append(entry["fence"])
    assert fences == list(range(MOST_WAITING))
    ids = {entry["fence"]: entry["id"] for entry in entries(own_redis, namespace)}
    assert len(set(ids.values())) == MOST_WAITING


def test_a_roll_back_holds_for_all_workers(
    workers: Workers, redis_server: RedisServer, namespace: str
) -> None:
    one, other = workers(), workers()
    event = ModelRolledBack(code="AI_MODEL_DRIFT_DETECTED", stage="chat", provider="openai")

    one.events.emit(event)
    wait_until(lambda: other.watch.rolled_back("chat"), 2)

    back = other.watch.rolled_back("chat")
    assert back is not None
    assert (back.by, back.code) == ("checklist", "AI_MODEL_DRIFT_DETECTED")
    assert one.watch.rolled_back("chat") == back
    wait_until(lambda: entries(redis_server, namespace))
    assert [read(entry) for entry in entries(redis_server, namespace)] == [event]


def test_a_roll_back_of_no_stage_is_logged_and_goes_out(
    workers: Workers,
    redis_server: RedisServer,
    namespace: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    shared = workers()
    shared.events.emit(ModelRolledBack(code="X", stage="nowhere"))
    shared.events.emit(FROZEN)

    wait_until(lambda: len(entries(redis_server, namespace)) == 2)
    assert "rollback_model" in caplog.text
    assert shared.switches.snapshot().rolled_back == {}


def test_in_mode_local_events_are_dropped_and_counted() -> None:
    metrics = Metrics.off()
    shared = SharedState(Settings(mode="local"), metrics, None)

    shared.events.emit(FROZEN)

    assert metrics.snapshot()["shared.dropped.events"] == 1
    shared.close()
