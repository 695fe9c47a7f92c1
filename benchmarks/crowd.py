"""One process with many callers of one question; started twice by ``lateness.py``.

    python -m benchmarks.crowd flightsvc|floor REDIS_URL CALLERS

It reads a round's key per line from its input, makes all callers ask at once, and answers with
one line of JSON: when each had its answer, and when the model had ended (both by the system's
monotonic clock, which all processes of a machine share).
"""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import gc
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import gevent
import redis
from gevent.event import Event

from flightsvc.flight import FlightContext, FlightKey, SingleFlight

#: How long the model thinks, in seconds.
MODEL_S = 1.0


class Floor:
    """What Python, gevent and one Redis can do at best: one stream waiter a process, one local
    event, no fence, no deadline, no failure."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(url, socket_timeout=30, protocol=2)

    def round(self, key: str) -> Callable[[], float]:
        answered = Event()
        ended: list[float] = []
        mine = self._redis.set(f"floor:{key}", "1", nx=True, ex=60)

        def fly() -> None:
            if mine:
                gevent.sleep(MODEL_S)
                ended.append(time.monotonic())
                self._redis.xadd(f"floor:{key}:events", {"ended": ended[0]})
                self._redis.expire(f"floor:{key}:events", 60)
            else:
                reply: Any = self._redis.xread({f"floor:{key}:events": "0-0"}, block=20_000)
                ended.append(float(reply[0][1][0][1][b"ended"]))
            answered.set()

        gevent.spawn(fly)

        def ask() -> float:
            answered.wait()
            return ended[0]

        return ask


class Flights:
    """flightsvc as a library."""

    def __init__(self, url: str) -> None:
        self._flights = SingleFlight.from_url(url, namespace="bench")

    def round(self, key: str) -> Callable[[], float]:
        flight_key = FlightKey("bench", key)

        def call(_ctx: FlightContext) -> dict[str, float]:
            gevent.sleep(MODEL_S)
            return {"ended": time.monotonic()}

        def ask() -> float:
            # the value is decoded by whoever reads it: once is enough for the measurement
            self.last = self._flights.run(flight_key, call, deadline_s=20)
            return 0.0

        return ask

    def ended(self) -> float:
        return float(self.last.value["ended"])


def crowd(ask: Callable[[], float], callers: int) -> dict[str, Any]:
    """All callers at once: when each had its answer, and what went wrong."""
    answered: list[float] = []
    errors: list[str] = []
    ended: list[float] = []

    def caller() -> None:
        try:
            ended_at = ask()
            answered.append(time.monotonic())
            if ended_at and not ended:
                ended.append(ended_at)
        except Exception as error:
            errors.append(type(error).__name__)

    gc.collect()
    gc.freeze()
    gevent.joinall([gevent.spawn(caller) for _ in range(callers)])
    gc.unfreeze()
    return {"ended": ended[0] if ended else 0.0, "answered": answered, "errors": errors}


def main() -> None:
    kind, url, callers = sys.argv[1], sys.argv[2], int(sys.argv[3])
    subject: Floor | Flights = Floor(url) if kind == "floor" else Flights(url)
    print("ready", flush=True)
    for line in sys.stdin:
        said = crowd(subject.round(line.strip()), callers)
        if isinstance(subject, Flights):
            said["ended"] = subject.ended()
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
