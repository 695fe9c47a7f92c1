"""H30 to H32: answers that were damaged where they are stored, and answers that are shared."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import gevent
import pytest
from zlib_ng import zlib_ng

from flightsvc.flight import FlightKey
from flightsvc.flight.serializer import seal
from flightsvc.store import Names
from tests.flight.conftest import Worker
from tests.flight.flying import STEADY, Caller, Model, ask, values
from tests.support.redis_server import RedisServer

KEY = FlightKey("scoring", "s1", "an answer")
GOOD = {"score": 80, "feedback": "很好 " * 300}
INFLATED = 200 * 1024 * 1024


def bomb(declared: int) -> bytes:
    """A small envelope, whole but for its checksum, whose body inflates to 200 MB."""
    stream = zlib_ng.compressobj(9)
    piece = bytes(1024 * 1024)
    body = b"".join(stream.compress(piece) for _ in range(INFLATED // len(piece)))
    body += stream.flush()
    return seal(1, f"bytes zlib raw {declared} {len(body)} 00000000".encode(), body)


DAMAGED = {
    "cut by 3": lambda blob: blob[:-3],
    "cut at the start": lambda blob: blob[3:],
    "a bit flipped in its line": lambda blob: blob[:20] + bytes([blob[20] ^ 1]) + blob[21:],
    "a bit flipped in its body": lambda blob: blob[:-9] + bytes([blob[-9] ^ 4]) + blob[-8:],
    "junk behind it": lambda blob: blob + b"junk",
    "empty": lambda blob: b"",
    "something else": lambda blob: b'{"score": 1}',
    "H31 a bomb that says so": lambda blob: bomb(INFLATED),
    "H31 a bomb that lies": lambda blob: bomb(4 * 1024 * 1024),
}


@pytest.fixture
def result_name(namespace: str) -> str:
    """Where the answer is stored."""
    return Names(namespace, 16).flight(KEY.flight_id)["result"]


@pytest.mark.parametrize("encoding", ["base64", "raw"])
@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_h30_a_damaged_answer_is_a_miss_and_is_repaired(
    worker: Worker, redis_server: RedisServer, result_name: str, damage: Any, encoding: str
) -> None:
    one, two, three = (worker(result_encoding=encoding) for _ in range(3))
    client = redis_server.client()
    one.run(KEY, Model(value="the old answer"), replay=False)
    first = one.run(KEY, Model(value=GOOD), replay=False)
    blob = client.get(result_name)
    assert isinstance(blob, bytes)
    # given a stored answer that is not what was stored
    client.set(result_name, damage(blob), keepttl=True)
    # when it is asked for, on workers that do not remember it themselves
    model = Model(takes_s=0.1, value=GOOD)
    callers = ask(two, KEY, model, 5) + ask(three, KEY, model, 5)
    # then there is one more call, the right answer for everybody, and the answer is stored anew
    assert values(callers) == [GOOD]
    assert model.calls == 1
    assert callers[0].result().fence > first.fence
    assert client.get(result_name) == blob
    assert client.pttl(result_name) > 0
    again = worker().run(KEY, model)
    assert (again.role, again.value, model.calls) == ("replay", GOOD, 1)


def test_h30_an_answer_that_is_damaged_before_its_followers_fetch_it(
    worker: Worker, redis_server: RedisServer, result_name: str
) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    client = redis_server.client()
    one.run(KEY, Model())
    # given a follower's join that finds a damaged answer of the flight it waited for
    client.set(result_name, b"junk", keepttl=True)
    model = Model(held=True, value=GOOD)
    followers = ask(two, KEY, model, 3)
    model.began.wait()
    model.let_go()
    assert values(followers) == [GOOD]


def test_an_answer_of_a_newer_release_is_a_miss_and_is_not_discarded(
    worker: Worker, redis_server: RedisServer, result_name: str
) -> None:
    one, two = worker(**STEADY), worker(**STEADY)
    client = redis_server.client()
    one.run(KEY, Model())
    newer = seal(2, b"words of another release", b"and its body")
    client.set(result_name, newer, keepttl=True)
    # while this release makes its own call, the newer one's answer stays
    model = Model(held=True)
    caller = Caller(two, KEY, model)
    model.began.wait()
    assert client.get(result_name) == newer
    model.let_go()
    assert caller.result().value == {"call": 1}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
def test_h31_many_callers_of_a_bomb_cost_little_memory(
    worker: Worker, redis_server: RedisServer, result_name: str
) -> None:
    one, two = worker(), worker()
    one.run(KEY, Model())
    redis_server.client().set(result_name, bomb(4 * 1024 * 1024), keepttl=True)
    gc.collect()
    before = resident_kb()
    peak: list[int] = []
    watching = gevent.spawn(watch, peak)
    model = Model(takes_s=0.1)
    assert values(ask(two, KEY, model, 100)) == [{"call": 1}]
    watching.kill()
    assert max(peak) - before < 30 * 1024


def watch(peak: list[int]) -> None:
    while True:
        peak.append(resident_kb())
        gevent.sleep(0.002)


def resident_kb() -> int:
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])


def test_h32_who_changes_an_answer_changes_a_copy(worker: Worker) -> None:
    one, two = worker(), worker()
    answer = {"missing_points": ["one"], "nested": {"a": 1}}
    callers = ask(one, KEY, model := Model(takes_s=0.1, value=answer), 3)
    model.began.wait()
    callers += ask(two, KEY, model, 3)
    changed = callers[0].result().value
    changed["missing_points"].append("two")
    del changed["nested"]["a"]
    for caller in callers[1:]:
        assert caller.result().value == {"missing_points": ["one"], "nested": {"a": 1}}
    # also not what is replayed, from this worker's memory or from Redis
    assert one.run(KEY, model).value == {"missing_points": ["one"], "nested": {"a": 1}}
    assert worker().run(KEY, model).value == {"missing_points": ["one"], "nested": {"a": 1}}
    # and what the call itself still holds is not shared either
    answer["nested"] = {"a": 2}
    assert one.run(KEY, model).value["nested"] == {"a": 1}


def test_h32_one_caller_sees_its_own_changes(worker: Worker) -> None:
    result = worker().run(KEY, Model(value={"a": []}))
    result.value["a"].append(1)
    assert result.value == {"a": [1]}
    assert result.json_bytes == b'{"a":[]}'
