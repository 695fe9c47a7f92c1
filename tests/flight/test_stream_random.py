"""Random harm to lines and to Redis, random listeners: nobody hears a text that nobody said."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import Any

import gevent
import pytest

from flightsvc.errors import FlightSvcError
from flightsvc.flight import Chunk, End, FlightContext, FlightKey, Restart, SingleFlight
from tests.faults.incident import Harm
from tests.faults.proxy import Proxy
from tests.faults.resp import command, script
from tests.flight.flying import count
from tests.processes import wait_until
from tests.support.redis_server import RedisServer

#: how long harm is done, in seconds
SECONDS = float(os.environ.get("STREAM_SECONDS", "5"))
SEEDS = range(int(os.environ.get("STREAM_SEEDS", "2")))
SETTINGS: dict[str, Any] = {
    "heartbeat_ms": 100,
    "takeover_detect_ms": 500,
    "redis_timeout_ms": 100,
    "stages": {"chat": {"timeout_ms": 5_000, "budget_ms": 5_000, "retry_delays_ms": []}},
}
#: what a listener may be told instead of an answer
NAMED = {
    "WAIT_TIMEOUT",
    "COORDINATION_UNAVAILABLE",
    "FLIGHT_OWNERS_LOST",
    "RESULT_NOT_STORED",
    "UNEXPECTED",
}


VERBS = ("append", "append", "append", "acquire", "beat", "finish", "fail", "leave", "abandon")


class Crowd:
    """Workers, listeners that come and go, and calls whose every chunk says whose it is."""

    def __init__(self, seed: int, server: RedisServer, mode: str) -> None:
        self.rng = random.Random(seed)
        self.server = server
        self.wires = [Proxy(server, tcp=False) for _ in range(3)]
        for wire in self.wires:
            wire.mend()
        self.workers = [
            SingleFlight.from_url(wire.url, mode=mode, **SETTINGS) for wire in self.wires
        ]
        #: what was wrong
        self.found: list[str] = []
        #: how listeners ended
        self.ends: dict[str, int] = {}
        self._calls = 0
        self._listeners: list[gevent.Greenlet[..., Any]] = []

    def call(self, ctx: FlightContext) -> object:
        """Says a text of its own; some fail in the middle."""
        self._calls += 1
        number, chunks = self._calls, self.rng.randint(0, 40)
        fails = self.rng.random() < 0.1
        for n in range(chunks):
            ctx.emit(f"{number}:{n}".encode())
            gevent.sleep(self.rng.choice([0, 0, 0.01, 0.05]))
        if fails:
            raise ValueError("in the middle")
        return {"call": number, "chunks": chunks}

    def listen(self) -> None:
        """One listener; some leave early, some are slow."""
        key = FlightKey("chat", int(time.monotonic() * 3))
        patience = self.rng.choice([100, 100, 100, 10, 3])
        pause_s = self.rng.choice([0, 0, 0, 0.03])
        heard: list[bytes] = []
        flights = self.rng.choice(self.workers)
        try:
            with flights.stream(key, self.call, deadline_s=8.0) as stream:
                for _ in range(patience):
                    news = stream.next()
                    if isinstance(news, Chunk):
                        heard.append(news.data)
                        self._check_part(heard)
                        gevent.sleep(pause_s)
                    elif isinstance(news, Restart):
                        if not heard:
                            self.found.append("a restart of nothing")
                        heard = []
                        self._ended("restart")
                    elif isinstance(news, End):
                        self._check_whole(heard, news.result.value)
                        self._ended("whole" if heard else "without chunks")
                        return
                self._ended("left")
        except FlightSvcError as error:
            self._ended(error.code)
            if error.code not in NAMED:
                self.found.append(f"told {error.code}")

    def come(self, seconds: float, harm: Callable[[], None]) -> None:
        """Listeners come, and harm is done, for a while; then all is mended."""
        until = time.monotonic() + seconds
        harming = gevent.spawn(self._harm_all_the_time, harm)
        while time.monotonic() < until:
            gevent.sleep(self.rng.uniform(0, 0.03))
            self._listeners.append(gevent.spawn(self.listen))
        harming.kill()
        for wire in self.wires:
            wire.heal()
        gevent.joinall(self._listeners, timeout=15, raise_error=True)
        assert all(listener.dead for listener in self._listeners), "somebody still listens"

    def harm(self) -> None:
        """Something bad."""
        wire = self.rng.choice(self.wires)
        kind = self.rng.randrange(8)
        if kind < 4:
            name = self.rng.choice(VERBS)
            match = script(name) if self.rng.random() < 0.7 else command("xread")
            incident = wire.plan(self.rng.choice(list(Harm)), match)
            gevent.spawn_later(self.rng.uniform(0.05, 0.5), incident.let_go)
        elif kind == 4:
            wire.reset()
        elif kind == 5:
            wire.fall_silent()
            gevent.spawn_later(self.rng.uniform(0.05, 0.8), wire.heal)
        else:
            kinds = ["meta", "events", "result", "interest"]
            with self.server.client() as client:
                names: Any = client.keys(f"*:{self.rng.choice(kinds)}:*")
                if names:
                    client.delete(self.rng.choice(sorted(names)))

    def close(self) -> None:
        for flights in self.workers:
            flights.close()
        for wire in self.wires:
            wire.__exit__(None, None, None)

    # -- inside ------------------------------------------------------------------------------

    def _check_part(self, heard: list[bytes]) -> None:
        number = heard[-1].split(b":")[0]
        if heard[-1] != b"%s:%d" % (number, len(heard) - 1) or heard[0] != number + b":0":
            self.found.append(f"heard {heard}")

    def _check_whole(self, heard: list[bytes], value: dict[str, int]) -> None:
        whole = [f"{value['call']}:{n}".encode() for n in range(value["chunks"])]
        if heard not in ([], whole):
            self.found.append(f"heard {heard} of {value}")

    def _harm_all_the_time(self, harm: Callable[[], None]) -> None:
        while True:
            gevent.sleep(self.rng.uniform(0.02, 0.3))
            harm()

    def _ended(self, how: str) -> None:
        self.ends[how] = self.ends.get(how, 0) + 1


@pytest.mark.parametrize("mode", ["hybrid", "distributed"])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_harm_breaks_no_text(own_redis: RedisServer, seed: int, mode: str) -> None:
    crowd = Crowd(seed, own_redis, mode)
    try:
        crowd.come(SECONDS, crowd.harm)
        print(crowd.ends)
        assert crowd.found == []
        assert crowd.ends.get("whole", 0) > 20
        for flights in crowd.workers:
            wait_until(lambda flights=flights: count(flights, "flight.in_flight") == 0, 8)  # type: ignore[misc]
            assert count(flights, "flight.waiters") == 0
    finally:
        crowd.close()


def test_without_harm_there_is_one_call_and_no_restart(own_redis: RedisServer) -> None:
    crowd = Crowd(7, own_redis, "distributed")
    try:
        crowd.come(3, lambda: None)
        print(crowd.ends)
        assert crowd.found == []
        assert set(crowd.ends) <= {"whole", "without chunks", "left", "UNEXPECTED", "WAIT_TIMEOUT"}
    finally:
        crowd.close()
