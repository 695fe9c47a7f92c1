"""The OpenAI door: time to the first token, and one answer streamed to hundreds of callers.

    python -m benchmarks.gateway [CALLERS]

Two gunicorn masters of one worker each on one Valkey; the model is a scripted server that thinks
for a while and then sends a chunk every few ms. Model, loader and servers share the machine.
"""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import statistics
import sys
import time
from dataclasses import dataclass
from typing import Any

import gevent
import urllib3

from benchmarks import servers
from benchmarks.door import Asker, Door, cpu_s, door

ROUNDS = 15
THINKS_MS = 300
#: of the answer that is streamed to many: 400 chunks, up to 200 a second
CHUNKS, GAP_MS = 400, 5


@dataclass(frozen=True)
class FirstToken:
    """Medians of the time to the first chunk, in ms."""

    direct: float
    owner: float
    follower: float
    late: float
    replay: float


@dataclass(frozen=True)
class Crowd:
    """One answer for many. ``writes``: scripts that Valkey ran, ``reads``: answers to readers;
    ``cpu_us``: of both workers, for one chunk to one caller; ``spread_ms``: from the first
    caller's end to the last one's."""

    callers: int
    texts: int
    calls: int
    writes: int
    reads: int
    cpu_us: float
    spread_ms: float


@dataclass(frozen=True)
class Equal:
    """Equal plain callers at once, then again: calls of the model, and p50 in ms."""

    name: str
    calls: int
    added_ms: float
    replay_ms: float


def first_token(doors: Door, rounds: int = ROUNDS) -> FirstToken:
    """A direct call, an owner and a follower take turns; a late joiner and a replay come after."""
    doors.model.script(
        {"rules": [], "default": {"answer": "echo", "latency_ms": THINKS_MS, "chunk_delay_ms": 20}}
    )
    got: dict[str, list[float]] = {name: [] for name in FirstToken.__annotations__}
    for number in range(rounds + 2):
        text = f"{number} " + "some words of an answer " * 4
        direct = Asker(doors.model.base_url, f"direct {text}")
        direct.end()
        near = Asker(doors.urls[number % 2], text)
        gevent.sleep(0.02)
        far = Asker(doors.urls[1 - number % 2], text)
        gevent.sleep(THINKS_MS / 1000 + 0.1)
        late = Asker(doors.urls[1 - number % 2], text)
        for each in (near, far, late):
            each.end()
        replay = Asker(doors.urls[1 - number % 2], text)
        replay.end()
        if number < 2:  # these warm up
            continue
        got["direct"].append(direct.first_ms)
        got["owner"].append(near.first_ms)
        got["follower"].append((far.first_at - near.asked_at) * 1000)
        got["late"].append(late.first_ms)
        got["replay"].append(replay.first_ms)
    return FirstToken(**{name: statistics.median(each) for name, each in got.items()})


def crowd(doors: Door, callers: int) -> Crowd:
    """One answer, streamed to so many callers of the two nodes."""
    text = f"{callers} " + "索引 word " * CHUNKS
    size = len(text) // CHUNKS + 1
    doors.model.reset()
    behave = {"answer": "echo", "chunk_chars": size, "chunk_delay_ms": GAP_MS, "gate": "go"}
    doors.model.script([{"behave": behave}])
    asking = [Asker(doors.urls[number % 2], text) for number in range(callers)]
    doors.model.until(open_calls=1)
    gevent.sleep(2 + callers / 300)
    before, used = doors.commands(), cpu_s()
    doors.model.open_gate("go")
    texts = {each.end() for each in asking}
    after = doors.commands()
    assert texts == {text}, "the texts differ"
    chunks = len(text) // size + 3
    writes, reads = (after.get(each, 0) - before.get(each, 0) for each in ("evalsha", "xread"))
    ends = [each.ended_at for each in asking]
    return Crowd(
        callers=callers,
        texts=len(texts),
        calls=doors.model.stats()["calls"],
        writes=writes,
        reads=reads,
        cpu_us=(cpu_s() - used) / callers / chunks * 1e6,
        spread_ms=(max(ends) - min(ends)) * 1000,
    )


def equal(doors: Door, callers: int = 50, rounds: int = 5) -> list[Equal]:
    """Equal callers of flightsvc, and of LiteLLM with its Redis cache, if it is there."""
    with servers.litellm(doors.model.base_url) as other:
        found = [_equal("flightsvc", doors, doors.urls, callers, rounds)]
        if other is not None:
            found.append(_equal("LiteLLM", doors, [other], callers, rounds))
        return found


def _equal(name: str, doors: Door, urls: list[str], callers: int, rounds: int) -> Equal:
    doors.model.reset()
    behave = {"answer": "echo", "latency_ms": THINKS_MS}
    doors.model.script({"rules": [], "default": behave})
    http = urllib3.PoolManager(maxsize=callers, retries=False, timeout=urllib3.Timeout(60))
    added, replays, calls = [], [], 0
    for number in range(rounds + 1):
        body = {"model": "m", "messages": [{"role": "user", "content": f"{name} {number}"}]}
        before = doors.model.stats()["calls"]
        at_once = _all(http, urls, body, callers)
        calls_now = doors.model.stats()["calls"] - before
        gevent.sleep(0.3)
        again = _all(http, urls, body, callers)
        if number:  # the first warms up
            added.append(at_once - THINKS_MS)
            replays.append(again)
            calls = max(calls, calls_now)
    return Equal(name, calls, statistics.median(added), statistics.median(replays))


def _all(http: urllib3.PoolManager, urls: list[str], body: Any, callers: int) -> float:
    """The median time of so many equal requests at once, in ms."""

    def one(number: int) -> float:
        began = time.perf_counter()
        url = f"{urls[number % len(urls)]}/chat/completions"
        answer = http.request("POST", url, json=body)
        assert answer.status == 200, answer.data
        return (time.perf_counter() - began) * 1000

    running = [gevent.spawn(one, number) for number in range(callers)]
    return statistics.median(each.get() for each in running)


def measure(callers: int = 500) -> tuple[FirstToken, list[Crowd], list[Equal]]:
    """All of it."""
    with door() as doors:
        first = first_token(doors)
        crowds = [crowd(doors, number) for number in (2, 50, callers)]
        return first, crowds, equal(doors)


def main() -> None:
    callers = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    first, crowds, equals = measure(callers)
    print(
        f"first token: direct {first.direct:.1f} ms, owner +{first.owner - first.direct:.1f} ms, "
        f"follower +{first.follower - first.direct:.1f} ms; late joiner {first.late:.1f} ms "
        f"and replay {first.replay:.1f} ms after asking"
    )
    for row in crowds:
        print(
            f"{row.callers:4} callers: {row.texts} text, {row.calls} call, {row.writes} writes, "
            f"{row.reads} reads, {row.cpu_us:.0f} µs a chunk and caller, "
            f"the last ends {row.spread_ms:.0f} ms after the first"
        )
    for each in equals:
        print(
            f"50 equal callers, {each.name}: {each.calls} calls, +{each.added_ms:.0f} ms; "
            f"again: {each.replay_ms:.0f} ms"
        )


if __name__ == "__main__":
    main()
